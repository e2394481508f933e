#include "jitunwind/unwind_core/check/check.h"

#include <algorithm>
#include <cstdio>

#include "jitunwind/unwind_core/check/code_paths_p.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {
namespace {

using namespace check_code;

/// Returns whether code of this CPU is checked. On x86 with words of 4 bytes, arguments are pushed, and SP behind a
/// call depends on the callee: of the C library's 3,977 FDEs, 125 would be called wrong, nearly all without reason.
bool can_check(const Arch& arch) noexcept { return arch.read_instruction && arch.word_size == 8; }

/// The code's bytes, in place or copied.
class CodeBytes {
 public:
  explicit CodeBytes(const CheckedCode& code) {
    const auto size = static_cast<std::size_t>(code.range.end - code.range.begin);
    if (const std::byte* const in_place = code.memory.view(code.range.begin, size, window_)) {
      bytes_ = {in_place, size};
      return;
    }
    copied_.resize(size);
    std::size_t got = 0;
    while (got < size) {
      const std::size_t more = code.memory.read(code.range.begin + got, std::span(copied_).subspan(got), window_);
      if (more == 0) break;
      got += more;
    }
    bytes_ = std::span<const std::byte>(copied_).first(got);
  }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  MemoryWindow window_{};
  std::vector<std::byte> copied_;
  std::span<const std::byte> bytes_;
};

/// The name that rows have for it.
std::string name_of(const Arch& arch, RegNum reg) {
  const RegisterInfo* const info = arch.by_dwarf(reg);
  return reg == arch.ra && arch.ra_in_memory ? "ra" : info ? info->name : "?";
}

class Report {
 public:
  Report(const CheckedCode& code, const Machine& machine, const RowAt& rows) noexcept
      : code_(code), machine_(machine), row_at_(rows) {}

  CheckReport make(const CodePaths& paths, const ClaimedRows& rows) {
    report_.assumed = paths.assumed();
    report_.depends_on_more = code_.lsda != 0 || paths.asks_tables() || rows.has_expression();
    report_.verdict = Verdict::agrees;
    paths.visit([&](std::uint32_t at, const Judgement* judgement) {
      const Addr end = code_.range.begin + at + std::max<std::uint32_t>(paths.length_at(at), machine_.arch.unit);
      if (!judgement) {
        ++report_.agreed;
        last_.reset();
        return;
      }
      add({code_.range.begin + at, end}, *judgement, rows.index_at(at));
    });
    report_.padding = {code_.range.begin + paths.judged_end(), code_.range.end};
    report_.foreign = {code_.range.begin + paths.foreign_begin(), code_.range.end};
    const Addr end = code_.range.begin + paths.size();
    if (end < code_.range.end) {
      report_.padding = report_.foreign = {};
      add({end, code_.range.end}, {Verdict::cannot_tell, CannotTell::unreadable}, 0);
    }
    return std::move(report_);
  }
  /// Nothing of it was compared.
  CheckReport nothing(AddrRange range, CannotTell why) {
    add(range, {Verdict::cannot_tell, why}, 0);
    return std::move(report_);
  }

 private:
  void add(AddrRange range, const Judgement& judgement, std::uint32_t row) {
    report_.verdict = std::max(report_.verdict, judgement.verdict);
    if (judgement.verdict == Verdict::disagrees)
      ++report_.disagreed;
    else
      ++report_.undecided, ++report_.reasons[static_cast<std::size_t>(judgement.why)];
    const bool continues = last_ && last_->same_as(judgement) && last_row_ == row;
    last_ = judgement;
    last_row_ = row;
    if (continues) {
      if (is_last_listed_) report_.findings.back().range.end = range.end, ++report_.findings.back().instructions;
      return;
    }
    is_last_listed_ = make_room(judgement.verdict);
    if (!is_last_listed_) return;
    CheckFinding finding;
    finding.range = range;
    finding.verdict = judgement.verdict;
    finding.why = judgement.why;
    finding.reg = judgement.reg;
    if (judgement.verdict == Verdict::disagrees) explain(judgement, finding);
    report_.findings.push_back(std::move(finding));
  }
  /// Findings that disagree take the place of undecided ones.
  bool make_room(Verdict verdict) {
    std::vector<CheckFinding>& listed = report_.findings;
    if (listed.size() < CheckReport::k_most_findings) return true;
    report_.has_more_findings = true;
    if (verdict != Verdict::disagrees) return false;
    const auto undecided =
        std::ranges::find(listed.rbegin(), listed.rend(), Verdict::cannot_tell, &CheckFinding::verdict);
    if (undecided == listed.rend()) return false;
    listed.erase(undecided.base() - 1);
    return true;
  }
  void explain(const Judgement& judgement, CheckFinding& out) {
    FrameRow row;
    const Found found = row_at_(out.range.begin, row);
    if (!found || !*found) return;
    const Arch& arch = machine_.arch;
    const Value& seen = judgement.seen;
    if (out.reg == arch.sp) {
      out.row_says = said(row.cfa, k_no_reg, {});
      const bool in_memory = row.cfa.kind == CfaRule::Kind::deref;
      out.code_does = (in_memory ? std::string("that word") : name_of(arch, row.cfa.reg)) + text_of(seen, in_memory);
    } else if (out.reg == arch.sign_state) {
      const bool is_signed = row.rule(out.reg).kind == RegRule::Kind::constant && (row.rule(out.reg).offset & 1) != 0;
      out.row_says = is_signed ? "that the return address is signed" : "that the return address is not signed";
      out.code_does = is_signed ? "it is not" : "it is";
    } else {
      const RegRule rule = row.rule(out.reg);
      const bool in_place = rule.kind == RegRule::Kind::unspecified || rule.kind == RegRule::Kind::same;
      const bool in_register = in_place || rule.kind == RegRule::Kind::in_reg;
      out.row_says = said({}, out.reg, in_place ? RegRule::same() : rule);
      const std::string place = in_register ? name_of(arch, in_place ? out.reg : rule.reg) : std::string("that word");
      out.code_does = place + text_of(seen, !in_register);
    }
    // It may be in another part.
    if (seen.since != 0)
      out.cause = code_.range.begin + static_cast<Addr>(std::int64_t{static_cast<std::int32_t>(seen.since - 1)});
    for (const RegisterInfo& info : arch.registers)
      if ((judgement.also & machine_.bit_of(info.dwarf)) != 0) out.also.push_back(info.dwarf);
  }
  /// One rule as rows print it.
  std::string said(const CfaRule& cfa, RegNum reg, const RegRule& rule) const {
    FrameRow row;
    row.cfa = cfa;
    if (reg == k_no_reg) return to_text(row, machine_.arch);
    row.cfa = CfaRule::at(machine_.arch.sp, 0);
    const std::size_t before = to_text(row, machine_.arch).size() + 1;
    (void)row.set(reg, rule);
    return to_text(row, machine_.arch).substr(before);
  }
  std::string text_of(const Value& value, bool is_memory) const {
    if (value.is_address()) {
      const std::string base = value.base == Value::Base::cfa ? " is cfa" : " is an aligned address";
      return value.offset == 0 ? base : base + (value.offset > 0 ? "+" : "") + std::to_string(value.offset);
    }
    for (const RegisterInfo& reg : machine_.arch.registers)
      if (value.kind == Value::Kind::entry && machine_.place(reg.dwarf) == value.reg)
        return std::string(" holds the caller's ") + name_of(machine_.arch, reg.dwarf);
    return is_memory && value.since == 0 ? " was not stored" : " was overwritten";
  }

  const CheckedCode& code_;
  const Machine& machine_;
  const RowAt& row_at_;
  CheckReport report_;
  std::optional<Judgement> last_;
  std::uint32_t last_row_ = 0;
  bool is_last_listed_ = false;
};

}  // namespace

const char* reason_text(CannotTell reason) noexcept {
  constexpr const char* k_texts[k_cannot_tell_reasons] = {
      "",
      "code of this CPU is not checked",
      "the description has no row there",
      "the description cannot be read there",
      "the rule is an expression that is not followed",
      "the row is that of another frame than the caller's",
      "the code cannot be read",
      "an unknown instruction, or data",
      "a jump leads into the middle of an instruction",
      "only indirect jumps lead there",
      "no path leads there",
      "the distance from the CFA is not known",
      "paths that differ lead there",
      "there is more code than is followed",
  };
  return k_texts[static_cast<std::size_t>(reason)];
}

CheckedParts::CheckedParts() : ways_(std::make_unique<Ways>()) {}
CheckedParts::~CheckedParts() = default;
bool CheckedParts::begin_round() { return ways_->begin_round(); }
bool CheckedParts::is_due(AddrRange part) const noexcept { return ways_->is_due(part); }

CheckReport check(const CheckedCode& code, const RowAt& rows, CheckedParts* parts) {
  const Machine machine(code.arch);
  Report report(code, machine, rows);
  if (!can_check(code.arch)) return report.nothing(code.range, CannotTell::other_cpu);
  if (code.range.empty()) return report.nothing(code.range, CannotTell::no_row);
  if (code.range.end - code.range.begin > k_most_checked_code) return report.nothing(code.range, CannotTell::too_long);
  ClaimedRows claimed(machine, code.range);
  claimed.read(rows, 1);
  const bool begins_as_entry = claimed.is_entry_row(claimed[0]);
  if (parts && parts->ways_->waits(code.range, begins_as_entry)) return {};
  const CodeBytes bytes(code);
  if (bytes.bytes().empty()) return report.nothing(code.range, CannotTell::unreadable);
  claimed.read(rows, code.range.size());
  const KnownJumps jumps(code);
  CodePaths paths(machine, code.range, bytes.bytes(), claimed, jumps, parts ? parts->ways_.get() : nullptr);
  paths.follow_all(begins_as_entry);
  return report.make(paths, claimed);
}

CheckReport check(const Fde& fde, const CfiContext& context, const Memory& memory, CheckedParts* parts) {
  FrameRow next;
  FdeRows all(fde, context, next);
  Addr end = fde.range.begin;
  const RowAt row_of = [&](Addr at, FrameRow& out) -> Found {
    if (at == end) {
      const Result<bool> more = all.next_behind(at);
      if (more && *more) {
        out = next;
        end = next.range.end;
      }
      return more;
    }
    const Status row = row_at(fde, context, at, out);
    if (!row) return row.error();
    return true;
  };
  MemoryWindow window;
  const Result<Addr> lsda = resolve(fde.lsda, context.arch, memory, window);
  return check({context.arch, fde.range, memory, lsda ? *lsda : 0}, row_of, parts);
}

std::string text(const CheckFinding& finding, const Arch& arch, Addr start) {
  const auto hex = [start](Addr address) {
    std::array<char, 20> at;
    const bool is_before = address < start;  // in another part
    std::snprintf(at.data(), at.size(), "%s0x%llx",
                  start == 0  ? ""
                  : is_before ? "-"
                              : "+",
                  static_cast<unsigned long long>(is_before ? start - address : address - start));
    return std::string(at.data());
  };
  std::string out = hex(finding.range.begin) + ": ";
  if (finding.verdict == Verdict::agrees) return out + "the row agrees";
  if (finding.verdict == Verdict::disagrees) {
    out += "the row says " + finding.row_says + ", but " + finding.code_does;
    if (finding.cause) out += ", since the instruction at " + hex(*finding.cause);
    for (const RegNum reg : finding.also)
      out += (reg == finding.also.front() ? "; also wrong: " : ", ") + name_of(arch, reg);
    return out;
  }
  out += "cannot tell";
  if (finding.reg != k_no_reg) out += " " + (finding.reg == arch.sp ? "the CFA" : name_of(arch, finding.reg));
  return out + ": " + reason_text(finding.why);
}

}  // namespace jitunwind
