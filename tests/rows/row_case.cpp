#include "tests/rows/row_case.h"
#include "tests/support/texts.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

namespace jitunwind::rows {
namespace {

using Words = std::vector<std::string>;

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

Words words_of(std::string_view line) {
  std::istringstream stream{std::string(line.substr(0, line.find('#')))};
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

template <class Int>
Int number(std::string_view text, int base = 10) {
  const std::string_view whole = text;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) refuse("bad number " + std::string(whole));
  return static_cast<Int>(negative ? ~value + 1 : value);
}

/// Returns libunwind's number.
int reg_number(std::string_view name, const Arch& arch) {
  if (const RegisterInfo* info = arch.by_name(name)) return info->libunwind;
  if (!name.starts_with('r')) refuse("unknown register " + std::string(name));
  return number<int>(name.substr(1));
}

ErrorCode code_by_name(std::string_view name) {
  for (int i = 0; i < 256; ++i)
    if (const auto code = static_cast<ErrorCode>(i); finding_name(code) == name) return code;
  refuse("unknown code " + std::string(name));
}

const std::map<std::string, int, std::less<>> k_tags{
    {"STOP", UNW_DYN_STOP},
    {"SAVE_REG", UNW_DYN_SAVE_REG},
    {"SPILL_FP_REL", UNW_DYN_SPILL_FP_REL},
    {"SPILL_SP_REL", UNW_DYN_SPILL_SP_REL},
    {"ADD", UNW_DYN_ADD},
    {"POP_FRAMES", UNW_DYN_POP_FRAMES},
    {"LABEL_STATE", UNW_DYN_LABEL_STATE},
    {"COPY_STATE", UNW_DYN_COPY_STATE},
    {"ALIAS", UNW_DYN_ALIAS},
};

class Parser {
 public:
  std::unique_ptr<CaseFile> parse(std::string_view text, const std::string& file) {
    std::istringstream stream{std::string(text)};
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      try {
        if (const Words words = words_of(line); !words.empty()) take(words, line.substr(0, line.find('#')));
      } catch (const std::exception& e) {
        refuse(file + ":" + std::to_string(line_) + ": " + e.what());
      }
    }
    return std::move(file_);
  }

 private:
  enum class Block { none, region, rows, calls, fixed };

  RowCase& current() {
    if (file_->cases.empty()) refuse("no case yet");
    return file_->cases.back();
  }

  AddrRange new_range(std::uint64_t size) {
    const Addr begin = next_place_;
    next_place_ += (size + 0x1ffff) & ~std::uint64_t{0xffff};
    return {begin, begin + size};
  }

  void take(const Words& words, const std::string& line) {
    if (words[0].starts_with('+')) return take_row(line);
    if (!take_header(words) && !take_fact(words)) take_directive(words);
  }

  static const std::string& argument(const Words& words, std::size_t i) {
    if (i >= words.size()) refuse(words[0] + ": argument missing");
    return words[i];
  }

  bool take_header(const Words& words) {
    const std::string& key = words[0];
    if (key == "case") {
      file_->cases.emplace_back();
      current().name = argument(words, 1);
      current().line = line_;
    } else if (key == "arch") {
      current().arch = find_arch(argument(words, 1));
      if (!current().arch) refuse("unknown CPU " + words[1]);
    } else if (key == "size") {
      current().range = new_range(number<std::uint64_t>(argument(words, 1)));
    } else if (key == "region") {
      take_region(words);
    } else if (key == "static") {
      current().statics.push_back({argument(words, 1), new_range(number<std::uint64_t>(argument(words, 2))), {}});
      block_ = Block::fixed;
    } else if (key == "rows" && words.size() == 3) {
      current().expectations = find_case(words[2]).expectations;
    } else if (key == "rows" || key == "calls") {
      block_ = key == "rows" ? Block::rows : Block::calls;
    } else {
      return false;
    }
    return true;
  }

  bool take_fact(const Words& words) {
    const std::string& key = words[0];
    if (key == "flags") {
      current().flags = number<std::uint32_t>(argument(words, 1));
    } else if (key == "findings") {
      for (std::size_t i = 1; i < words.size(); ++i)
        if (words[i] != "none") current().findings.insert(finding_name(code_by_name(words[i])));
    } else if (key == "call_ends") {
      for (std::size_t i = 1; i < words.size(); ++i) current().call_ends.push_back(number<std::uint64_t>(words[i], 16));
    } else if (key == "ends_without_return") {
      current().ends_without_return = true;
    } else {
      return false;
    }
    return true;
  }

  void take_region(const Words& words) {
    block_ = Block::region;
    CaseRegion region;
    region.insn_count = number<std::int32_t>(argument(words, 1));
    for (std::size_t i = 2; i < words.size(); i += 2) {
      if (words[i] == "allocated")
        region.allocated = number<std::uint32_t>(argument(words, i + 1));
      else if (words[i] == "again")
        region.again = number<int>(argument(words, i + 1));
      else
        refuse("region: " + words[i]);
    }
    current().regions.push_back(std::move(region));
  }

  const RowCase& find_case(std::string_view name) {
    for (const RowCase& c : file_->cases)
      if (c.name == name) return c;
    refuse("no case " + std::string(name) + " so far");
  }

  std::uint64_t address(const std::string& text) {
    const std::size_t plus = text.find('+');
    if (plus == 0 || plus == std::string::npos) return number<std::uint64_t>(text);
    const auto offset = number<std::uint64_t>(text.substr(plus), 16);
    const std::string name = text.substr(0, plus);
    for (const StaticCode& s : current().statics)
      if (s.name == name) return s.range.begin + offset;
    return find_case(name).range.begin + offset;
  }

  void take_directive(const Words& words) {
    if (block_ != Block::region) refuse("directive outside of a region: " + words[0]);
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool alias_target = i == 1 && words[0] == "ALIAS";
      text += (i == 0 ? "" : " ") + (alias_target ? std::to_string(address(words[i])) : words[i]);
    }
    current().regions.back().ops.push_back(parse_directive(text, *current().arch));
  }

  void take_row(const std::string& line) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) refuse("row without colon");
    const std::string text = line.substr(colon + 2);
    const Words head = words_of(text);
    if (head.empty()) refuse("empty row");
    Expectation expected;
    expected.of_call = block_ == Block::calls;
    if (head[0] == "error") {
      expected.error = code_by_name(argument(head, 1));
    } else {
      const auto row = parse_row(text, *current().arch, file_->pool);
      if (!row) refuse(std::string(row.error().what) + " at character " + std::to_string(row.error().at));
      expected.row = row->row;
    }
    for (const std::string& offset : words_of(line.substr(0, colon))) take_offsets(offset, expected);
  }

  void take_offsets(const std::string& text, const Expectation& expected) {
    const std::size_t dots = text.find("..");
    const auto first = number<std::uint64_t>(text.substr(0, dots), 16);
    const auto last = dots == std::string::npos ? first : number<std::uint64_t>(text.substr(dots + 2), 16);
    for (std::uint64_t offset = first; offset <= last; offset += current().arch->unit) {
      if (block_ == Block::fixed) {
        current().statics.back().rows.push_back({offset, expected.row});
      } else if (block_ == Block::rows || block_ == Block::calls) {
        current().expectations.push_back(expected);
        current().expectations.back().offset = offset;
      } else {
        refuse("row outside of rows");
      }
    }
  }

  std::unique_ptr<CaseFile> file_ = std::make_unique<CaseFile>();
  int line_ = 0;
  Addr next_place_ = 0x100000;
  Block block_ = Block::none;
};

}  // namespace

unw_dyn_op_t parse_directive(std::string_view text, const Arch& arch) {
  const Words words = words_of(text);
  if (words.empty()) refuse("empty directive");
  int tag = 0;
  if (const auto known = k_tags.find(words[0]); known != k_tags.end())
    tag = known->second;
  else if (words[0].starts_with("TAG_"))
    tag = number<int>(words[0].substr(4));
  else
    refuse("unknown directive " + words[0]);
  int reg = 0, qp = _U_QP_TRUE;
  std::int64_t when = -1;
  unw_word_t value = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t comma = word.find(',');
    if (word[0] == '@') {
      when = number<std::int64_t>(word.substr(1), 16);
    } else if (word[0] == '?') {
      qp = number<int>(word.substr(1));
    } else if (comma == std::string::npos) {
      value = number<unw_word_t>(word);
    } else {
      reg = reg_number(word.substr(0, comma), arch);
      const std::string operand = word.substr(comma + 1);
      if (operand == "unknown")
        value = UNW_DYN_ADD_UNKNOWN;
      else if (tag == UNW_DYN_SAVE_REG)
        value = static_cast<unw_word_t>(static_cast<std::int64_t>(reg_number(operand, arch)));
      else
        value = number<unw_word_t>(operand);
    }
  }
  return _U_dyn_op(tag, qp, when, reg, value);
}

std::unique_ptr<CaseFile> parse_cases(std::string_view text, const std::string& file) {
  return Parser().parse(text, file);
}

std::unique_ptr<CaseFile> load_cases(const std::string& path) {
  const std::filesystem::path full = std::filesystem::path(JITUNWIND_SOURCE_DIR "/tests/rows") / path;
  const std::string text = test::text_of_file(full);
  if (text.empty()) refuse("cannot read " + full.string());
  return parse_cases(text, path);
}

CaseProcedure::CaseProcedure(const std::vector<CaseRegion>& regions, AddrRange range, std::uint32_t flags) {
  std::vector<unw_dyn_region_info_t*> made;
  for (const CaseRegion& region : regions) {
    const std::uint32_t count = std::max(region.allocated, static_cast<std::uint32_t>(region.ops.size()));
    // The memory is exactly as long as the descriptor says, so that reads behind it are noticed.
    const std::size_t size = _U_dyn_region_info_size(count);
    memory_.push_back(std::make_unique<std::byte[]>(size));
    std::memset(memory_.back().get(), 0x5a, size);
    auto* const info = reinterpret_cast<unw_dyn_region_info_t*>(memory_.back().get());
    info->next = nullptr;
    info->insn_count = region.insn_count;
    info->op_count = count;
    if (!region.ops.empty()) std::memcpy(info->op, region.ops.data(), region.ops.size() * sizeof(unw_dyn_op_t));
    if (!made.empty()) made.back()->next = info;
    made.push_back(info);
  }
  for (std::size_t i = 0; i < regions.size(); ++i)
    if (regions[i].again >= 0) made[i]->next = made.at(static_cast<std::size_t>(regions[i].again));
  info_.start_ip = range.begin;
  info_.end_ip = range.end;
  info_.format = UNW_INFO_FORMAT_DYNAMIC;
  info_.u.pi.flags = flags;
  info_.u.pi.regions = made.empty() ? nullptr : made.front();
}

std::string outcome_text(const Status& status, const FrameRow& row, const Arch& arch) {
  return status ? to_text(row, arch) : "error " + finding_name(status.error().code);
}

}  // namespace jitunwind::rows
