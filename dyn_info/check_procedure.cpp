#include "jitunwind/dyn_info/check_procedure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/procedure_rows_internal.h"
#include "jitunwind/dyn_info/registry/index/procedure_nodes_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;

/// The rows of one descriptor, in ascending order at the cost of one lookup of the last one.
class RowsOfProcedure {
 public:
  RowsOfProcedure(const unw_dyn_info_t& info, const Arch& arch)
      : info_(info),
        arch_(arch),
        sources_{&dyn_row_source()},
        space_{arch, k_memory, local_modules(), sources_, {}},
        parts_(parts_of_registered(info)),
        run_(parts_.regions, regions_of(info), code_of(info), arch) {}

  Found row_at(Addr at, FrameRow& out) {
    if (info_.format != UNW_INFO_FORMAT_DYNAMIC) return table_row(at, out);
    if (at < next_) return any_row(at, out);
    DirectiveOutcome outcome(arch_);
    if (const Status ran = run_.go_to(at, outcome); !ran) return ran.error();
    next_ = outcome.range.end;
    if (outcome.state.alias()) return any_row(at, out);
    const Status made = make_row(outcome, out);
    out.range = {at, outcome.range.end};
    if (!made) return made.error();
    return true;
  }

 private:
  static Addr regions_of(const unw_dyn_info_t& info) noexcept {
    return info.format == UNW_INFO_FORMAT_DYNAMIC ? reinterpret_cast<std::uintptr_t>(info.u.pi.regions) : 0;
  }
  Found any_row(Addr at, FrameRow& out) {
    MemoryWindow window;
    Lookup lookup(space_, CodeAddress::interrupted(at), window);
    const Found found = described_row(info_, lookup, out);
    out.range = {at, at + 1};
    return found;
  }
  Found table_row(Addr at, FrameRow& out) {
    MemoryWindow window;
    CfiContext context{arch_};
    context.data_base = info_.gp;
    Fde fde;
    const Found found = find_own_fde(info_, at, arch_, window, fde);
    if (!found || !*found) return found;
    const Status row = jitunwind::row_at(fde, context, at, out);
    if (!row) return row.error();
    return true;
  }

  const unw_dyn_info_t& info_;
  const Arch& arch_;
  std::array<const RowSource*, 1> sources_;
  AddressSpace space_;
  DescriptionParts parts_;
  DirectiveRun run_;
  Addr next_ = 0;
};

/// The mistakes that were told: each is told once, though many procedures have its shape.
class ToldMistakes {
 public:
  /// False: it was there. A mistake for which there is no room is told again.
  bool add(std::uint64_t mistake) noexcept {
    for (std::size_t i = 0; i < k_tries; ++i) {
      std::uint64_t known = 0;
      if (told_[static_cast<std::size_t>((mistake + i) % told_.size())].compare_exchange_strong(known, mistake))
        return true;
      if (known == mistake) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t k_tries = 16;
  std::array<std::atomic<std::uint64_t>, 1024> told_{};
};
constinit ToldMistakes told_mistakes;

bool can_check(const unw_dyn_info_t& info) { return NodePool::can_bind(&info) && info.start_ip < info.end_ip; }

/// Code that was compared with its description, and passed: it is not compared again, wherever it is registered.
class PassedCode {
 public:
  using Key = std::uint64_t;
  /// The key of what is registered together. 0: its result is not that of its bytes and descriptions alone, or it is
  /// more code than is followed.
  static Key key_of(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept {
    Key key = static_cast<Key>(behind);
    for (const unw_dyn_info_t* const info : batch) {
      const Key one = can_check(*info) ? key_of(*info) : 0;
      if (one == 0) return 0;
      key = hash_with(hash_with(key, one), info->start_ip - batch.front()->start_ip);
    }
    return key | 1;
  }
  bool has(Key key) const noexcept { return key != 0 && place(key).load(std::memory_order_relaxed) == key; }
  void add(Key key) noexcept { place(key).store(key, std::memory_order_relaxed); }

 private:
  static constexpr unsigned k_bits = 12;
  const std::atomic<Key>& place(Key key) const noexcept { return passed_[table_place(key, k_bits)]; }
  std::atomic<Key>& place(Key key) noexcept { return passed_[table_place(key, k_bits)]; }

  static Key key_of(const unw_dyn_info_t& info) noexcept {
    const Addr size = info.end_ip - info.start_ip;
    if (size > k_most_checked_code) return 0;
    MemoryWindow window;
    const std::byte* const code = k_memory.view(info.start_ip, static_cast<std::size_t>(size), window);
    if (code == nullptr) return 0;
    const Key key = hash_of({code, static_cast<std::size_t>(size)}, 0);
    return info.format == UNW_INFO_FORMAT_DYNAMIC ? with_directives(info, key) : with_fde(info, key);
  }
  static Key with_directives(const unw_dyn_info_t& info, Key key) noexcept {
    if (lsda_extension(info).lsda != 0) return 0;
    key = hash_with(key, std::uint64_t{info.u.pi.flags} << 32 | static_cast<std::uint32_t>(info.u.pi.pad0));
    for (const unw_dyn_region_info_t* region = info.u.pi.regions; region; region = region->next) {
      const std::span ops(region->op, region->op_count);
      const auto stop = std::ranges::find(ops, UNW_DYN_STOP, &unw_dyn_op_t::tag);
      const std::span said(ops.begin(), stop);
      if (std::ranges::count(said, UNW_DYN_ALIAS, &unw_dyn_op_t::tag) != 0) return 0;
      key = hash_of(std::as_bytes(said), hash_with(key, static_cast<std::uint32_t>(region->insn_count)));
    }
    return key;
  }
  /// Language-specific data are read as well, from elsewhere. DW_CFA_set_loc has an address: of instructions with such
  /// a byte, which may be an operand, the place counts, too.
  static Key with_fde(const unw_dyn_info_t& info, Key key) noexcept {
    MemoryWindow window;
    Fde fde;
    const Found found = find_own_fde(info, info.start_ip, *host_arch(), window, fde);
    if (!found || !*found || fde.lsda.value != 0) return 0;
    const Cie& cie = fde.cie;
    const std::uint64_t flags =
        std::uint64_t{cie.signal_frame} << 9 | std::uint64_t{cie.signed_with_b_key} << 8 | cie.pointer_encoding;
    for (const std::uint64_t word : {fde.range.begin - info.start_ip, fde.range.size(), cie.code_alignment,
                                     static_cast<std::uint64_t>(cie.data_alignment), Key{cie.return_address}, flags})
      key = hash_with(key, word);
    const std::span instructions = fde.instructions.bytes;
    constexpr std::byte k_set_loc{1};  // DWARF 5, 7.24
    if (std::ranges::find(instructions, k_set_loc) != instructions.end())
      key = hash_with(hash_with(key, info.start_ip), fde.instructions.address);
    return hash_of(instructions, hash_of(cie.instructions.bytes, key));
  }
  static Key hash_of(std::span<const std::byte> bytes, Key hash) noexcept {
    hash = hash_with(hash, bytes.size());
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t size = std::min(bytes.size(), sizeof word);
      std::memcpy(&word, bytes.data(), size);
      hash = hash_with(hash, word) ^ hash >> 32;
      bytes = bytes.subspan(size);
    }
    return hash;
  }

  std::array<std::atomic<Key>, std::size_t{1} << k_bits> passed_{};
};
constinit PassedCode passed_code;

void tell(const unw_dyn_info_t& info, const std::string& mistake, std::uint64_t instructions = 1) noexcept {
  std::array<char, 120> name;
  MemoryWindow window;
  ProcedureName written;
  const Found named =
      info.u.pi.name_ptr == 0 ? Found(false) : read_name(k_memory, info.u.pi.name_ptr, name, window, written);
  tell_mistake(code_of(info), named && *named ? name.data() : nullptr, mistake, instructions);
}

/// Error: a row cannot be read.
Status validate_one(const unw_dyn_info_t& info, const Arch& arch) {
  const std::vector<Finding> findings = validate(info, arch, {.ends_without_return = true});
  const auto wrong = std::ranges::find_if_not(findings, is_warning, &Finding::code);
  if (wrong == findings.end()) return Done{};
  tell(info, wrong->message);
  const auto offset = static_cast<Addr>(std::max<std::int64_t>(wrong->offset, 0));
  return Error{wrong->code, info.start_ip + offset, "JITUNWIND_CHECK: the description cannot be read"};
}

/// Tells each stretch of rows that is wrong, up to a number of them, and returns the error of the first.
Error tell_all(const unw_dyn_info_t& info, const CheckReport& report, const Arch& arch) {
  std::size_t left = 8;
  std::uint64_t untold = report.disagreed;
  Error error{ErrorCode::code_disagrees, 0, "JITUNWIND_CHECK refuses it"};
  for (const CheckFinding& finding : report.findings) {
    if (finding.verdict != Verdict::disagrees) continue;
    if (left-- == 0) break;
    if (error.at == 0) error.at = finding.range.begin;
    untold -= finding.instructions;
    tell(info, text(finding, arch, info.start_ip), finding.instructions);
  }
  if (untold != 0) tell(info, "more rows that are wrong", untold);
  return error;
}

/// Error: the code does something else than the row at Error::at says, or ends there. `has_own_size`: an author of code
/// has given the size, not a compiler.
Status judge(const unw_dyn_info_t& info, const CheckReport& report, bool has_own_size) {
  const Arch& arch = *host_arch();
  if (report.disagreed != 0) return tell_all(info, report, arch);
  const bool is_foreign = !report.foreign.empty();
  const AddrRange more = is_foreign ? report.foreign : report.padding;
  if (!has_own_size || more.empty()) return Done{};
  Line mistake;
  mistake.text("+").hex(more.begin - info.start_ip);
  mistake.text(is_foreign ? ": nothing leads to the code from here up to the end of the range, and its rows are not "
                            "right there, as where another function or a PLT is taken along, "
                          : ": nothing but padding up to the end of the range, ");
  mistake.number(more.size()).text(" bytes");
  tell(info, std::string(mistake.view()));
  return Error{ErrorCode::code_disagrees, more.begin,
               is_foreign ? "JITUNWIND_CHECK: the range takes other code along"
                          : "JITUNWIND_CHECK: the range takes padding along"};
}

CheckReport check_part(const unw_dyn_info_t& info, CheckedParts* parts) {
  const Arch& arch = *host_arch();
  MemoryWindow window;
  CfiContext context{arch};
  Fde fde;
  if (info.format != UNW_INFO_FORMAT_DYNAMIC) {
    context.data_base = info.gp;
    const Found found = find_own_fde(info, info.start_ip, arch, window, fde);
    const bool is_all = found && *found && fde.range.begin == info.start_ip && fde.range.end == info.end_ip;
    if (is_all) return check(fde, context, k_memory, parts);
  }
  RowsOfProcedure rows(info, arch);
  const LsdaExtension data = lsda_extension(info);
  return check(
      {arch, code_of(info), k_memory, data.lsda, data.landing_pad_base},
      [&](Addr at, FrameRow& out) { return rows.row_at(at, out); }, parts);
}

/// Procedures that are registered together: some may be parts of others.
std::vector<CheckReport> check_parts(std::span<unw_dyn_info_t* const> batch) {
  std::vector<CheckReport> reports(batch.size());
  if (batch.size() == 1) {
    if (can_check(*batch.front())) reports.front() = check_part(*batch.front(), nullptr);
    return reports;
  }
  CheckedParts parts;
  const auto check_all = [&](auto is_due) {
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (can_check(*batch[i]) && is_due(*batch[i])) reports[i] = check_part(*batch[i], &parts);
  };
  check_all([](const unw_dyn_info_t&) { return true; });
  while (parts.begin_round()) check_all([&](const unw_dyn_info_t& info) { return parts.is_due(code_of(info)); });
  return reports;
}

}  // namespace

CheckReport check(const unw_dyn_info_t& info) { return check_part(info, nullptr); }

void tell_mistake(AddrRange code, const char* name, std::string_view mistake, std::uint64_t instructions) noexcept {
  if (!told_mistakes.add(std::hash<std::string_view>()(mistake) | 1)) return;
  Line line;
  line.text("jitunwind: JITUNWIND_CHECK: ");
  if (name) line.foreign(name).text(" ");
  line.range(code.begin, code.end).text(" ").text(mistake);
  if (instructions > 1) line.text("; ").number(instructions).text(" instructions");
  line.write_to(STDERR_FILENO);
}

Status check_registrations(std::span<unw_dyn_info_t* const> batch, Behind behind) noexcept {
  if (!host_arch()) return Done{};
  const bool has_own_size = behind == Behind::user_word;
  try {
    const PassedCode::Key key = PassedCode::key_of(batch, behind);
    if (passed_code.has(key)) return Done{};
    bool passes = key != 0;
    const std::vector<CheckReport> reports = check_parts(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const unw_dyn_info_t& info = *batch[i];
      if (!can_check(info)) continue;
      Status right = behind == Behind::nothing ? validate_one(info, *host_arch()) : Done{};
      if (right) right = judge(info, reports[i], has_own_size);
      if (!right && refuses_mistakes()) return right;
      passes = passes && right && !reports[i].depends_on_more;
    }
    if (passes) passed_code.add(key);
  } catch (const std::bad_alloc&) {  // the registration itself says so, if it needs memory
  }
  return Done{};
}

const FunctionsAbove* jitunwind_functions_above() noexcept {
  static constexpr FunctionsAbove k_functions{attach_perf_in_writer, check_registrations, tell_mistake,
                                              tell_perf_lines};
  return &k_functions;
}

[[gnu::constructor]] static void come() { library_comes(*jitunwind_functions_above()); }

}  // namespace jitunwind
