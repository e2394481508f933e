#include <algorithm>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/builders/shapes/shape_lists_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {
namespace {

using Directives = std::vector<DraftDirective>;
using Regions = std::vector<Directives>;

/// Makes one plan; its members are the inputs of every step.
class Planner {
 public:
  Planner(const FrameRow& row, const Arch& arch, std::optional<std::int64_t> sp_distance)
      : row_(row), arch_(arch), sp_distance_(sp_distance) {}

  /// Plans the regions that express the row, as far as directives can. False: directives have no such CFA rule.
  bool plan() {
    using Kind = CfaRule::Kind;
    if (row_.cfa.kind == Kind::offset && row_.cfa.reg == arch_.sp) return from_sp();
    if (row_.cfa.kind == Kind::offset) return from_frame_pointer();
    if (row_.cfa.kind == Kind::deref && row_.cfa.reg == arch_.sp) return from_slot();
    return false;
  }

  Regions regions;

 private:
  /// CFA = sp + n
  bool from_sp() {
    if (sp_distance_ && *sp_distance_ != row_.cfa.offset) return false;
    allocate_and_save(arch_.entry_cfa, row_.cfa.offset);
    return true;
  }

  /// CFA = fp + n: allocate, save, then fp := SP + (distance - n), then SP moves away if its distance is not known.
  bool from_frame_pointer() {
    const RegNum fp = row_.cfa.reg;
    const std::int64_t distance = sp_distance_.value_or(deepest(arch_.entry_cfa));
    allocate_and_save(arch_.entry_cfa, distance);
    Directives& set = regions.emplace_back();
    set.push_back(DraftDirective::save_reg(arch_.sp, fp));
    if (distance != row_.cfa.offset) set.push_back(DraftDirective::add(fp, distance - row_.cfa.offset));
    lose_sp();
    return true;
  }

  /// CFA = *(sp + o) + n: a scratch register takes SP at the distance n below the CFA. The frame is then allocated, SP
  /// moves away if its distance is not known, and the scratch register is stored.
  bool from_slot() {
    const auto scratch = std::ranges::find_if(arch_.registers, [&](const RegisterInfo& r) {
      return r.reg_class == RegClass::general && !r.preserved && r.dwarf != arch_.sp && r.dwarf != arch_.ra &&
             r.dwarf != arch_.pc && row_.rule(r.dwarf).kind == RegRule::Kind::unspecified;
    });
    if (scratch == arch_.registers.end()) return false;
    const std::int64_t distance = sp_distance_.value_or(deepest(row_.cfa.add));
    if (row_.cfa.add != arch_.entry_cfa)
      regions.push_back({DraftDirective::add(arch_.sp, arch_.entry_cfa - row_.cfa.add)});
    regions.push_back({DraftDirective::save_reg(arch_.sp, scratch->dwarf)});
    allocate_and_save(row_.cfa.add, distance);
    lose_sp();
    regions.push_back({DraftDirective::spill_sp_rel(arch_.sp, row_.cfa.offset)});
    return true;
  }

  /// The smallest distance of SP that covers the lowest slot; at least `least`.
  std::int64_t deepest(std::int64_t least) const {
    std::int64_t distance = least;
    for (const FrameRow::Entry& e : row_.entries())
      if (e.rule.kind == RegRule::Kind::at_cfa) distance = std::max(distance, -e.rule.offset);
    // SP is aligned at the distance `least`, as at entry, and moves in whole steps from there.
    const std::int64_t step = arch_.sp_granularity;
    return least + (distance - least + step - 1) / step * step;
  }

  bool is_entry_rule(const FrameRow::Entry& e) const {
    return e.reg == arch_.ra && arch_.ra_in_memory && e.rule == RegRule::at_cfa(arch_.entry_ra);
  }

  void allocate_and_save(std::int64_t from, std::int64_t distance) {
    Directives& region = regions.emplace_back();
    if (distance != from) region.push_back(DraftDirective::add(arch_.sp, from - distance));
    for (const FrameRow::Entry& e : row_.entries()) {
      if (is_entry_rule(e)) continue;
      if (e.rule.kind == RegRule::Kind::at_cfa)
        region.push_back(DraftDirective::spill_sp_rel(e.reg, e.rule.offset + distance));
      if (e.rule.kind == RegRule::Kind::in_reg) region.push_back(DraftDirective::save_reg(e.reg, e.rule.reg));
      if (e.reg == arch_.sign_state && e.rule == RegRule::constant(1))
        region.push_back(DraftDirective::add(arch_.sign_state, 1));
    }
  }

  /// Slots relative to an SP of unknown distance come after its move.
  void lose_sp() {
    if (sp_distance_) return;
    regions.push_back({DraftDirective::add(arch_.sp, k_unknown_distance)});
    Directives slots;
    for (const FrameRow::Entry& e : row_.entries())
      if (e.rule.kind == RegRule::Kind::at_reg && e.rule.reg == arch_.sp)
        slots.push_back(DraftDirective::spill_sp_rel(e.reg, e.rule.offset));
    if (!slots.empty()) regions.push_back(std::move(slots));
  }

  const FrameRow& row_;
  const Arch& arch_;
  std::optional<std::int64_t> sp_distance_;
};

/// The sums of numbers below this limit do not overflow, and no frame is larger.
bool is_small(std::int64_t value) {
  constexpr std::int64_t k_limit = std::int64_t{1} << 48;
  return value > -k_limit && value < k_limit;
}

bool has_small_numbers(const FrameRow& row, std::optional<std::int64_t> sp_distance) {
  return is_small(row.cfa.offset) && is_small(row.cfa.add) && is_small(sp_distance.value_or(0)) &&
         std::ranges::all_of(row.entries(), [](const FrameRow::Entry& e) {
           return e.rule.has_expression() || is_small(e.rule.offset);
         });
}

/// Reads the planned regions back as a row.
Status interpreted(const Regions& plan, const Arch& arch, FrameRow& out) {
  std::vector<RegionSpec> specs;
  for (const Directives& directives : plan) {
    RegionSpec& spec = specs.emplace_back();
    for (const DraftDirective& d : directives) {
      const auto value = d.tag == UNW_DYN_SAVE_REG ? number_in_directives(arch, d.saved_in) : d.value;
      spec.ops.push_back(_U_dyn_op(d.tag, _U_QP_TRUE, 0, number_in_directives(arch, d.reg), value));
    }
  }
  const RegionList list(specs);
  const unw_dyn_info_t info = descriptor_at_zero(list.first(), arch.unit);
  return directive_row(info, arch, CodeAddress::interrupted(0), nullptr, out);
}

/// The row without rules "same": they change nothing for a preserved register or a return address register.
FrameRow normalized(const FrameRow& row) {
  FrameRow out = row;
  for (const FrameRow::Entry& e : row.entries())
    if (e.rule.kind == RegRule::Kind::same) (void)out.set(e.reg, RegRule{});
  return out;
}

}  // namespace

Result<std::vector<Directives>, EntryStateError> plan_entry_state(const FrameRow& row, const Arch& arch,
                                                                  std::optional<std::int64_t> sp_distance) {
  const std::string wanted = to_text(row, arch);
  if (!has_small_numbers(row, sp_distance))
    return EntryStateError{ErrorCode::invalid_argument, "offsets that no frame has",
                           "offsets that no frame has: " + wanted};
  Planner planner(row, arch, sp_distance);
  if (!planner.plan())
    return EntryStateError{ErrorCode::invalid_argument, "directives have no such CFA rule",
                           "directives have no such CFA rule: " + wanted + "; give it to row_at()"};
  FrameRow got;
  if (const Status read = interpreted(planner.regions, arch, got); !read)
    return EntryStateError{read.error().code, read.error().what, std::string(read.error().what) + ": " + wanted};
  if (!(normalized(got) == normalized(row)))
    return EntryStateError{
        ErrorCode::invalid_argument, "directives cannot say this row",
        "directives cannot say " + wanted + ", only " + to_text(got, arch) + "; give it to row_at()"};
  return std::move(planner.regions);
}

}  // namespace jitunwind
