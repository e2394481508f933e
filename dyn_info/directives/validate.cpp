// Checks a description: first each directive alone, then the states of the directive machine on its way through the
// procedure, then the facts that only the author of the code knows.
#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstdio>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"

namespace jitunwind {

std::string finding_name(ErrorCode code) {
  std::string name = error_name(code);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

bool is_warning(ErrorCode code) noexcept { return code == ErrorCode::w_unbalanced || code == ErrorCode::w_unsorted; }

namespace {

using Place = DirectiveObserver::Place;

constexpr std::int64_t k_nowhere = -1;
constexpr LocalRegionReader k_local_regions;

struct Region {
  RegionHeader header;
  std::int64_t begin;  // units
};

class Validator final : public DirectiveObserver {
 public:
  Validator(const unw_dyn_info_t& info, const Arch& arch, const CodeFacts& facts)
      : info_(info),
        arch_(arch),
        facts_(facts),
        units_(static_cast<std::int64_t>((info.end_ip - info.start_ip) / arch.unit)) {}

  std::vector<Finding> run() &&;

  void finding(ErrorCode code, const Place& place, const char* what) override { add(code, place, what); }
  void state(const Place& place, const FrameState& state) override;
  void spill(const Place& place, RegNum reg, std::optional<std::int64_t> above_sp, const FrameState& state) override;
  void region_end(int region, std::int64_t unit, const FrameState& state) override;

 private:
  bool check_envelope();
  bool list_regions();
  void check_region(int index, std::int64_t& end);
  void check_directives(int index);
  void check_directive(const unw_dyn_op_t& op, const Place& place, std::int64_t length);
  void judge_lost(std::int64_t until);
  void check_calls();
  void check_aliases();
  void check_alias(int region, std::int64_t unit);

  [[gnu::cold]] void add(ErrorCode code, const Place& place, const std::string& reason);
  const unw_dyn_op_t* directive(const Place& place) const;

  const unw_dyn_info_t& info_;
  const Arch& arch_;
  const CodeFacts& facts_;
  const std::int64_t units_;
  std::vector<Region> regions_;
  std::vector<Finding> findings_;
  Place shown_{-1, -1, 0};  // place of the state that holds from shown_.unit on
  bool shown_lost_ = false;
  bool lost_reported_ = false;
  Place last_end_{-1, -1, 0};  // end of the last region that was reached
  bool unbalanced_ = false;
};

const unw_dyn_op_t* Validator::directive(const Place& place) const {
  const auto region = static_cast<std::size_t>(place.region);
  if (place.region < 0 || place.directive < 0 || region >= regions_.size()) return nullptr;
  const auto ops = k_local_regions.read_ops(regions_[region].header, static_cast<std::uint32_t>(place.directive), {});
  return ops && !ops->empty() ? &ops->front() : nullptr;
}

/// A condition may be found on several ways: it is reported once.
void Validator::add(ErrorCode code, const Place& place, const std::string& reason) {
  for (const Finding& f : findings_)
    if (f.code == code && f.region == place.region && f.directive == place.directive) return;
  Finding finding{code, place.region, place.directive, place.unit < 0 ? -1 : place.unit * arch_.unit, ""};
  if (place.region >= 0) finding.message += "region " + std::to_string(place.region) + ", ";
  if (const unw_dyn_op_t* const op = directive(place))
    finding.message += "directive " + std::to_string(place.directive) + " (" + directive_text(*op, arch_) + "), ";
  if (finding.offset >= 0) {
    char offset[32];
    std::snprintf(offset, sizeof offset, "offset +%" PRIx64 ", ", static_cast<std::uint64_t>(finding.offset));
    finding.message += offset;
  }
  if (finding.message.empty()) finding.message = "procedure, ";
  finding.message.replace(finding.message.size() - 2, 2, ": " + finding_name(code) + ": " + reason);
  findings_.push_back(std::move(finding));
}

bool Validator::check_envelope() {
  const Place whole{-1, -1, k_nowhere};
  if (info_.start_ip >= info_.end_ip) {
    add(ErrorCode::e_range, whole, "empty or inverted address range");
    return false;
  }
  const bool whole_units = (info_.end_ip - info_.start_ip) % arch_.unit == 0;
  if (!whole_units)
    add(ErrorCode::e_range, whole, "length is not a multiple of " + std::to_string(arch_.unit) + " bytes");
  if (info_.format < UNW_INFO_FORMAT_DYNAMIC || info_.format > UNW_INFO_FORMAT_REMOTE_TABLE_64)
    add(ErrorCode::e_format, whole, "unknown format " + std::to_string(info_.format));
  if (info_.format == UNW_INFO_FORMAT_ARM_EXIDX)
    add(ErrorCode::e_format, whole, std::string("ARM index tables do not describe code of ") + arch_.name);
  if (info_.format != UNW_INFO_FORMAT_DYNAMIC) return false;
  if (info_.u.pi.flags != 0 || info_.u.pi.pad0 != 0) add(ErrorCode::e_flags, whole, "flags and pad0 must be 0");
  return whole_units;
}

bool Validator::list_regions() {
  RegionHeader header;
  header.next = reinterpret_cast<std::uintptr_t>(info_.u.pi.regions);
  while (header.next != 0) {
    if (regions_.size() == k_max_regions) {
      add(ErrorCode::e_cycle, {-1, -1, k_nowhere}, "region list longer than 4096 or cyclic");
      return false;
    }
    (void)k_local_regions.read_header(header.next, header);
    regions_.push_back({header, 0});
  }
  return true;
}

void Validator::check_region(int index, std::int64_t& end) {
  Region& region = regions_[static_cast<std::size_t>(index)];
  const Place place{index, -1, k_nowhere};
  region.begin = end;
  if (region.header.insn_count < 0) {
    if (region.header.next != 0) {
      add(ErrorCode::e_neg, place, "negative insn_count in a region that is not the last");
    } else {
      region.begin = units_ - region.header.length();
      if (region.begin < end) add(ErrorCode::e_overlap, place, "regions are longer than the procedure");
    }
  }
  end = region.begin + region.header.length();
  if (end > units_) add(ErrorCode::e_overlap, place, "regions are longer than the procedure");
}

void Validator::check_directives(int index) {
  const Region& region = regions_[static_cast<std::size_t>(index)];
  WorkBudget budget;
  RegionOps ops(k_local_regions, budget);
  if (const Status opened = ops.open(region.header); !opened)
    return add(opened.error().code, {index, -1, k_nowhere}, opened.error().what);
  ops.rewind_list();
  std::int64_t latest = k_when_entry;
  bool unsorted = false;
  while (const unw_dyn_op_t* op = ops.next_listed()) {
    const Place place{index, static_cast<int>(ops.index()), region.begin + ops.listed_when() + 1};
    check_directive(*op, place, region.header.length());
    if (op->tag == UNW_DYN_ALIAS && ops.count() > 1)
      add(ErrorCode::e_alias, place, "ALIAS is not the only directive of its region");
    if (ops.listed_when() < latest && !unsorted) {
      add(ErrorCode::w_unsorted, place, "directives are not in the order of their instructions");
      unsorted = true;
    }
    latest = ops.listed_when();
  }
}

void Validator::check_directive(const unw_dyn_op_t& op, const Place& place, std::int64_t length) {
  if (op.tag < 0 || op.tag > UNW_DYN_ALIAS) add(ErrorCode::e_tag, place, "unknown directive before STOP");
  if (op.qp != _U_QP_TRUE) add(ErrorCode::e_qp, place, "this CPU has no predicates");
  if (length != 0 && op.when >= length)
    add(ErrorCode::e_when, place, "the region has " + std::to_string(length) + " instruction units");
  if (op.tag == UNW_DYN_ADD && op.reg == arch_.by_dwarf(arch_.sp)->libunwind &&
      static_cast<std::int64_t>(op.val) % arch_.sp_granularity != 0)
    add(ErrorCode::e_add_align, place, "not a multiple of " + std::to_string(arch_.sp_granularity) + " bytes");
  if (const char* const wrong = wrong_register(op, arch_.by_libunwind(op.reg), arch_))
    add(ErrorCode::e_reg, place, wrong);
}

void Validator::spill(const Place& place, RegNum reg, std::optional<std::int64_t> above_sp, const FrameState& state) {
  if (above_sp && *above_sp < -std::int64_t{arch_.red_zone})
    add(ErrorCode::e_spill_low, place,
        "slot at SP" + std::to_string(*above_sp) + ", red zone " + std::to_string(arch_.red_zone) + " bytes");
  const std::optional<std::int64_t> slot = reg == arch_.sp ? std::nullopt : state.slot_from_cfa(reg);
  if (!slot || reg == arch_.ra || !arch_.ra_in_memory || !state.ra_at_entry()) return;
  if (*slot > arch_.entry_ra - arch_.word_size && *slot < arch_.entry_ra + arch_.word_size)
    add(ErrorCode::e_spill_ra, place, "slot overlaps the return address");
}

/// A state matters if an instruction boundary of the procedure lies within its validity.
void Validator::judge_lost(std::int64_t until) {
  if (shown_.unit >= until || shown_.unit >= units_) return;
  if (shown_lost_ && !lost_reported_) add(ErrorCode::e_sp_lost, shown_, "SP relation lost and no frame pointer");
  lost_reported_ = shown_lost_;
}

void Validator::state(const Place& place, const FrameState& state) {
  judge_lost(place.unit);
  shown_ = place;
  shown_lost_ = state.is_lost();
}

void Validator::region_end(int region, std::int64_t unit, const FrameState& state) {
  last_end_ = {region, -1, unit};
  unbalanced_ = !state.alias() && state.sp_off() != arch_.entry_cfa;
}

/// A caller's return address must not be in a register that the callee may have overwritten.
void Validator::check_calls() {
  std::vector<std::uint64_t> ends(facts_.call_ends.begin(), facts_.call_ends.end());
  std::ranges::sort(ends);
  DirectiveRun run(info_, arch_);
  for (const std::uint64_t call_end : ends) {
    DirectiveOutcome outcome(arch_);
    FrameRow row;
    const CodeAddress at = CodeAddress::returned_to(info_.start_ip + call_end);
    if (!run.go_to(at.lookup(), outcome) || outcome.state.alias() || !make_row(outcome, row)) continue;
    const RegRule ra = row.rule(arch_.ra);
    const bool untouched = ra.kind == RegRule::Kind::unspecified && !arch_.ra_in_memory;
    const bool in_scratch = ra.kind == RegRule::Kind::in_reg && !arch_.by_dwarf(ra.reg)->preserved;
    if (!untouched && !in_scratch) continue;
    char what[80];
    std::snprintf(what, sizeof what, "the call that ends at +%" PRIx64 " overwrites the return address", call_end);
    add(ErrorCode::e_lr, {-1, -1, static_cast<std::int64_t>(call_end / arch_.unit)}, what);
  }
}

/// Only aliases that stay inside the procedure can be followed while nothing is registered.
void Validator::check_alias(int region, std::int64_t unit) {
  Addr at = info_.start_ip + static_cast<Addr>(unit) * arch_.unit;
  for (unsigned depth = 0; depth <= k_max_alias_depth; ++depth) {
    DirectiveOutcome outcome(arch_);
    if (!run_directives(info_, arch_, at, outcome) || !outcome.state.alias()) return;
    at = *outcome.state.alias();
  }
  add(ErrorCode::e_alias_depth, {region, -1, unit}, "ALIAS leads back to itself");
}

void Validator::check_aliases() {
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    WorkBudget budget;
    RegionOps ops(k_local_regions, budget);
    if (!ops.open(regions_[i].header) || !ops.alias_when()) continue;
    const std::int64_t begin = regions_[i].begin;
    check_alias(static_cast<int>(i), begin + *ops.alias_when() + 1);
    check_alias(static_cast<int>(i), begin + regions_[i].header.length());
  }
}

std::vector<Finding> Validator::run() && {
  if (!check_envelope() || !list_regions()) return std::move(findings_);
  std::int64_t end = 0;
  for (int i = 0; i < static_cast<int>(regions_.size()); ++i) {
    check_region(i, end);
    check_directives(i);
  }
  DirectiveMachine machine(arch_, k_local_regions, reinterpret_cast<std::uintptr_t>(info_.u.pi.regions), units_, this);
  if (const Status ran = machine.run_to(units_ - 1); !ran) {
    add(ran.error().code, machine.place(), ran.error().what);
  } else {
    judge_lost(units_);
    if (unbalanced_ && !facts_.ends_without_return)
      add(ErrorCode::w_unbalanced, last_end_, "the last region ends with the frame still allocated");
  }
  check_calls();
  check_aliases();
  return std::move(findings_);
}

}  // namespace

std::vector<Finding> validate(const unw_dyn_info_t& info, const Arch& arch, const CodeFacts& facts) {
  return Validator(info, arch, facts).run();
}

}  // namespace jitunwind
