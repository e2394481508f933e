#include "jitunwind/adapters/asmjit/derivation/lost_values_p.h"

namespace jitunwind::derivation {
namespace {

RegSet in_place(const FrameState& state) {
  RegSet set = 0;
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (state.reg(r).is_entry(r)) set |= set_of(r);
  return set;
}

/// Registers whose values at entry are in another place.
RegSet copied(const FrameState& state) {
  RegSet set = 0;
  for (RegNum r = 0; r < k_tracked_registers; ++r) {
    if (state.slots_of(r) != 0) set |= set_of(r);
    const Value& value = state.reg(r);
    if (value.kind == Value::Kind::entry && value.reg != r) set |= set_of(value.reg);
  }
  return set;
}

}  // namespace

LostValues::LostValues(FrameAnalysis& analysis) : analysis_(analysis) {
  for (const std::size_t start : analysis.starts()) at_head_.try_emplace(start), work_.insert(start);
  while (!work_.empty()) {
    const std::size_t head = *work_.begin();
    work_.erase(work_.begin());
    analysis_.watch(head, *this);
  }
}

LostValue LostValues::find(std::size_t instruction, RegNum reg) {
  found_ = {};
  found_state_.reset();
  wanted_ = instruction;
  if (const auto head = analysis_.head_of(instruction)) analysis_.watch(*head, *this);
  wanted_ = LostValue::k_nowhere;
  return found_[reg];
}

void LostValues::look(std::size_t next, const FrameState& state) {
  if (next != wanted_) return;
  found_ = now_;
  found_state_ = state;
}

void LostValues::begins(std::size_t head, const FrameState& state) {
  now_ = at_head_[head];
  in_place_ = in_place(state);
  held_ = in_place_ | copied(state);
  look(head, state);
}

void LostValues::executed(std::size_t instruction, const FrameState& state) {
  const RegSet in_place_now = in_place(state), copied_now = copied(state), held_now = in_place_now | copied_now;
  for (RegNum r = 0; r < k_tracked_registers; ++r) {
    if (has(in_place_now, r)) now_[r].changed = LostValue::k_nowhere;
    if (has(in_place_ & ~in_place_now, r)) now_[r].changed = instruction;
    if (has(held_now, r)) now_[r].lost = LostValue::k_nowhere;
    if (has(held_ & ~held_now, r)) now_[r].lost = instruction, now_[r].lost_by_meeting = false;
    if (has(copied_now, r)) now_[r].copies_end = LostValue::k_nowhere, now_[r].some_had_none = false;
  }
  in_place_ = in_place_now;
  held_ = held_now;
  look(instruction + 1, state);
}

/// Merges the record of copies. True when it changed.
bool LostValues::copies_meet(RegNum reg, bool had_one, std::size_t to, LostValue& at) const {
  const LostValue& here = now_[reg];
  const LostValue before = at;
  if (at.copies_end == LostValue::k_nowhere) at.copies_end = had_one ? to : here.copies_end;
  at.some_had_none |= !had_one && (here.copies_end == LostValue::k_nowhere || here.some_had_none);
  return at.copies_end != before.copies_end || at.some_had_none != before.some_had_none;
}

/// The first path that lost the value is blamed where paths merge; if none did, the merge is blamed.
void LostValues::flows(std::size_t to, const FrameState& state) {
  const FrameState* const there = analysis_.state_at_head(to);
  if (wanted_ != LostValue::k_nowhere || !there || analysis_.starts_at(to)) return;
  auto [known, improved] = at_head_.try_emplace(to);
  const RegSet in_place_there = in_place(*there), copied_there = copied(*there);
  const RegSet held_there = in_place_there | copied_there, copied_here = copied(state);
  for (RegNum r = 0; r < k_tracked_registers; ++r) {
    LostValue &at = known->second[r], &here = now_[r];
    if (!has(in_place_there, r) && at.changed == LostValue::k_nowhere && here.changed != LostValue::k_nowhere)
      at.changed = here.changed, improved = true;
    if (!has(copied_there, r)) improved |= copies_meet(r, has(copied_here, r), to, at);
    if (has(held_there, r)) continue;
    const bool here_lost = here.lost != LostValue::k_nowhere;
    if (at.lost == LostValue::k_nowhere || (at.lost_by_meeting && here_lost && !here.lost_by_meeting)) {
      at.lost = here_lost ? here.lost : to;
      at.lost_by_meeting = here_lost ? here.lost_by_meeting : true;
      improved = true;
    }
  }
  if (improved) work_.insert(to);
}

}  // namespace jitunwind::derivation
