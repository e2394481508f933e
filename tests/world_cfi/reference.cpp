#include "tests/world_cfi/reference.h"

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <stdexcept>

extern char** environ;

namespace jitunwind::world {
namespace {

using Kind = Cell::Kind;

std::optional<std::uint64_t> take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<std::int64_t> decimal(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "rsp+8", "c-16", "CFA": a word and an offset, 0 where there is none.
struct NameAndOffset {
  std::string_view name;
  std::int64_t offset;
};
std::optional<NameAndOffset> name_and_offset(std::string_view text) {
  const std::size_t sign = text.find_last_of("+-");
  if (sign == text.npos) return NameAndOffset{text, 0};
  const auto offset = decimal(text.substr(sign));
  if (!offset) return std::nullopt;
  return NameAndOffset{text.substr(0, sign), *offset};
}

}  // namespace

const char* tool_name(Tool tool) { return tool == Tool::readelf ? "readelf" : "llvm-dwarfdump"; }

std::string to_text(const Cell& cell) {
  const std::string offset = (cell.offset < 0 ? "" : "+") + std::to_string(cell.offset);
  switch (cell.kind) {
    case Kind::none:
      return "no rule";
    case Kind::lost:
      return "undefined";
    case Kind::same:
      return "same";
    case Kind::at_cfa:
      return "[cfa" + offset + "]";
    case Kind::is_cfa:
      return "cfa" + offset;
    case Kind::reg:
      return "register " + std::to_string(cell.reg) + offset;
    case Kind::at_expression:
      return "[expression]";
    case Kind::is_expression:
      return "expression";
    case Kind::not_understood:
      break;
  }
  return "?";
}

namespace {

struct Bank {
  std::string_view prefix;
  unsigned first_index, last_index, first_number;
};

/// "x7" of {"x", 0, 30, 0}.
RegNum reg_in(std::span<const Bank> banks, std::string_view name) {
  for (const Bank& bank : banks) {
    if (!name.starts_with(bank.prefix)) continue;
    const auto index = decimal(name.substr(bank.prefix.size()));
    if (index && *index >= bank.first_index && *index <= bank.last_index)
      return static_cast<RegNum>(bank.first_number + static_cast<unsigned>(*index) - bank.first_index);
  }
  return k_no_reg;
}

// Names that are not the tables'. AMD64 ABI, figure 3.36; DWARF for the Arm 64-bit Architecture, table 1, where LLVM
// names the narrowest view; RISC-V calling convention, "Register Convention". "r" and a number is a register without a
// name.
constexpr Bank k_x86_64[] = {{"xmm", 0, 15, 17}, {"xmm", 16, 31, 67}, {"st", 0, 7, 33}, {"mm", 0, 7, 41}};
constexpr Bank k_aarch64[] = {{"w", 0, 30, 0}, {"b", 0, 31, 64}};
constexpr Bank k_riscv[] = {{"s", 0, 1, 8},   {"s", 2, 11, 18}, {"a", 0, 7, 10},  {"t", 0, 2, 5},    {"t", 3, 6, 28},
                            {"ft", 0, 7, 32}, {"fs", 0, 1, 40}, {"fa", 0, 7, 42}, {"fs", 2, 11, 50}, {"ft", 8, 11, 60}};
constexpr Bank k_others[] = {{"reg", 0, 0xfffe, 0}, {"r", 0, 0xfffe, 0}};

std::span<const Bank> banks_of(const Arch& arch) {
  switch (arch.elf_machine) {
    case EM_X86_64:
      return k_x86_64;
    case EM_AARCH64:
      return k_aarch64;
    case EM_RISCV:
      return k_riscv;
    default:
      return {};
  }
}

}  // namespace

RegNum reg_by_name(std::string_view name, const Arch& arch) {
  if (name.starts_with('%')) name.remove_prefix(1);  // s390x
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower == "ra") return k_ra_column;
  if (const RegisterInfo* const known = arch.by_name(lower)) return known->dwarf;
  if (lower == "wsp") return arch.sp;
  if (lower == "vg") return 46;  // how long vectors of AArch64 are
  const RegNum named = reg_in(banks_of(arch), lower);
  return named == k_no_reg ? reg_in(k_others, lower) : named;
}

Cell Reference::reg_cell(std::string_view text) const {
  const auto parts = name_and_offset(text);
  const RegNum reg = parts ? reg_by_name(parts->name, arch_) : k_no_reg;
  if (reg == k_no_reg) return {Kind::not_understood, 0, 0};
  return {Kind::reg, reg, parts->offset};
}

Cell Reference::readelf_cfa(std::string_view word) const {
  if (word == "exp") return {Kind::is_expression, 0, 0};
  return reg_cell(word);
}

Cell Reference::readelf_cell(std::string_view word) const {
  if (word == "u") return {Kind::none, 0, 0};
  if (word == "s") return {Kind::same, 0, 0};
  if (word == "exp") return {Kind::at_expression, 0, 0};
  if (word == "vexp") return {Kind::is_expression, 0, 0};
  const auto parts = name_and_offset(word);
  if (parts && parts->name == "c") return {Kind::at_cfa, 0, parts->offset};
  if (parts && parts->name == "v") return {Kind::is_cfa, 0, parts->offset};
  return reg_cell(word);
}

Cell Reference::dwarfdump_cfa(std::string_view text) const {
  if (text == "unspecified") return {Kind::none, 0, 0};
  if (text.starts_with("DW_OP_")) return {Kind::is_expression, 0, 0};
  return reg_cell(text);
}

Cell Reference::dwarfdump_cell(std::string_view text) const {
  if (text == "unspecified") return {Kind::none, 0, 0};
  if (text == "undefined") return {Kind::lost, 0, 0};
  if (text == "same") return {Kind::same, 0, 0};
  const bool loads = text.starts_with('[');
  if (loads) text = text.substr(1, text.find(']') - 1);
  if (text.starts_with("DW_OP_")) return {loads ? Kind::at_expression : Kind::is_expression, 0, 0};
  const auto parts = name_and_offset(text);
  if (parts && parts->name == "CFA") return {loads ? Kind::at_cfa : Kind::is_cfa, 0, parts->offset};
  return loads ? Cell{Kind::not_understood, 0, 0} : reg_cell(text);
}

Reference::Reference(Tool tool, const std::string& file, const Arch& arch) : tool_(tool), arch_(arch) {
  const char* const readelf[] = {"readelf", "--wide", "--debug-dump=frames-interp,no-follow-links", file.c_str(),
                                 nullptr};
  const char* const dwarfdump[] = {LLVM_DWARFDUMP, "--eh-frame", file.c_str(), nullptr};
  const char* const* const arguments = tool == Tool::readelf ? readelf : dwarfdump;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int failed =
      ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, const_cast<char* const*>(arguments), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) {
    ::close(ends[0]);
    throw std::runtime_error(std::string("cannot run ") + arguments[0]);
  }
  pipe_ = ::fdopen(ends[0], "r");
}

Reference::~Reference() {
  std::fclose(pipe_);
  ::waitpid(pid_, nullptr, 0);
  std::free(buffer_);
}

bool Reference::read_line() {
  if (line_waits_) {
    line_waits_ = false;
    return true;
  }
  const ssize_t length = ::getline(&buffer_, &capacity_, pipe_);
  if (length < 0) return false;
  line_ = std::string_view(buffer_, static_cast<std::size_t>(length));
  while (line_.ends_with('\n') || line_.ends_with(' ')) line_.remove_suffix(1);
  return true;
}

/// "00000018 0000000000000024 0000001c FDE cie=00000000 pc=0000000000026000..0000000000026360"
bool Reference::read_header(ReferenceFde& out) {
  std::string_view text = line_;
  const auto offset = take_hex(text);
  cie_ = offset.value_or(0);
  const std::size_t pc = line_.find(" pc=");
  const std::size_t cie = line_.find(" FDE cie=");
  if (pc == line_.npos || cie == line_.npos) return false;
  text = line_.substr(cie + 9);
  const auto personality = personalities_.find(take_hex(text).value_or(0));
  text = line_.substr(pc + 4);
  const auto begin = take_hex(text);
  text.remove_prefix(std::min(text.find_first_not_of('.'), text.size()));
  const auto end = take_hex(text);
  if (!offset || !begin || !end) return false;
  out = {section_, *offset, {*begin, *end}, {}, 0, 0, false};
  if (personality != personalities_.end()) out.personality = personality->second;
  return true;
}

/// "   LOC           CFA      rbx   rbp   ra"
void Reference::read_columns() {
  std::string_view text = line_;
  take_word(text);
  take_word(text);
  columns_.clear();
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text))
    columns_.push_back(reg_by_name(word, arch_));
}

/// "0000000000026006 rsp+24   c-8"
ReferenceRow Reference::readelf_row() const {
  std::string_view text = line_;
  ReferenceRow row;
  row.at = take_hex(text).value_or(0);
  row.cfa = readelf_cfa(take_word(text));
  row.rules.reserve(columns_.size());
  for (const RegNum reg : columns_) {
    std::string_view word = take_word(text);
    if (word.starts_with('(')) word = take_word(text);  // "r13 (r13)"
    row.rules.push_back({reg, readelf_cell(word)});
  }
  return row;
}

/// "  0x26006: CFA=RSP+24: RBX=[CFA-16], RIP=[CFA-8]"; operations of an expression are separated as rules are.
ReferenceRow Reference::dwarfdump_row() const {
  std::string_view text = line_.substr(4);
  ReferenceRow row;
  row.at = take_hex(text).value_or(0);
  text.remove_prefix(std::min<std::size_t>(text.size(), 6));  // ": CFA="
  const std::size_t colon = std::min(text.find(": "), text.size());
  row.cfa = dwarfdump_cfa(text.substr(0, colon));
  text.remove_prefix(std::min(colon + 2, text.size()));
  while (!text.empty()) {
    std::size_t end = 0;
    do {  // up to a comma that begins another rule
      end = std::min(text.find(", ", end + 1), text.size());
    } while (end < text.size() && text.substr(end + 2).starts_with("DW_OP_"));
    const std::string_view rule = text.substr(0, end);
    text.remove_prefix(std::min(end + 2, text.size()));
    const std::size_t equals = std::min(rule.find('='), rule.size() - 1);
    row.rules.push_back({reg_by_name(rule.substr(0, equals), arch_), dwarfdump_cell(rule.substr(equals + 1))});
  }
  return row;
}

bool Reference::next(ReferenceFde& out) {
  bool inside = false;
  while (read_line()) {
    if (line_.find(" FDE ") != line_.npos || line_.find(" CIE") != line_.npos) {
      if (inside) {
        line_waits_ = true;
        return true;
      }
      inside = read_header(out);
    } else if (line_.starts_with("Contents of the ")) {
      line_.remove_prefix(16);
      section_ = take_word(line_);
      if (inside) return true;
    } else if (line_.ends_with("_frame contents:")) {
      section_ = line_.substr(0, line_.find(' '));
      if (inside) return true;
      personalities_.clear();
    } else if (inside) {
      read_line_of_fde(out);
    } else if (line_.starts_with("  Personality Address: ")) {
      std::string_view text = line_.substr(23);
      personalities_[cie_] = take_hex(text).value_or(0);
    }
  }
  return inside;
}

void Reference::read_line_of_fde(ReferenceFde& out) {
  if (line_.starts_with("  0x")) {
    out.rows.push_back(dwarfdump_row());
  } else if (line_.starts_with("  LSDA Address: ")) {
    std::string_view text = line_.substr(16);
    out.lsda = take_hex(text).value_or(0);
  } else if (line_.starts_with("  DW_CFA_restore_state")) {
    out.restores_state = true;
  } else if (line_.starts_with("   LOC")) {
    read_columns();
  } else if (tool_ == Tool::readelf && line_.size() > 8 && line_.find("terminator") == line_.npos) {
    const std::size_t digits = line_.find_first_not_of("0123456789abcdef");
    if (digits >= 8 && digits != line_.npos && line_[digits] == ' ') out.rows.push_back(readelf_row());
  }
}

}  // namespace jitunwind::world
