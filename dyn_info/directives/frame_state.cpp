#include "jitunwind/dyn_info/directives/frame_state_p.h"

#include <algorithm>
#include <bit>

namespace jitunwind {
namespace {

std::int64_t plus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t minus(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

constexpr Error k_alias_state{ErrorCode::e_alias_state, 0, "SP or FP arithmetic on a state taken over by ALIAS"};
constexpr Error k_no_source{ErrorCode::e_no_fp, 0, "SP can be reloaded only from the frame pointer or its slot"};
constexpr Error k_unknown_sp{ErrorCode::e_fp_unknown, 0, "frame pointer set from an SP of unknown distance"};
constexpr Error k_other_register{ErrorCode::e_add_reg, 0, "ADD to a register that is neither SP nor the frame pointer"};
constexpr Error k_no_frame_pointer{ErrorCode::e_no_fp, 0, "SPILL_FP_REL without a frame pointer"};
constexpr Error k_clobbered{ErrorCode::e_fp_clobber, 0, "frame pointer register overwritten before it is saved"};
constexpr Error k_sp_too_high{ErrorCode::e_sp_high, 0, "stack pointer raised above its value at entry"};

}  // namespace

FrameState::FrameState(const Arch& arch) noexcept : arch_(&arch), sp_off_(arch.entry_cfa) {
  if (arch.ra_in_memory) put(arch.ra, Place::at_cfa, arch.entry_ra);
}

bool FrameState::ra_at_entry() const noexcept {
  const std::size_t c = column(arch_->ra);
  if (!arch_->ra_in_memory) return !is_alias_ && (!changed(c) || places_[c] == Place::same);
  return changed(c) && places_[c] == Place::at_cfa && values_[c] == arch_->entry_ra;
}

const Error* FrameState::reload_sp(RegNum from) noexcept {
  if (is_alias_) return &k_alias_state;
  if (fp_ != k_no_reg && from == fp_) {
    sp_off_ = fp_off_;
    if (!arch_->by_dwarf(from)->preserved) end_fp();
  } else if (from == arch_->sp && has_slot_) {
    sp_off_ = slot_off_;
    has_slot_ = false;
  } else {
    return &k_no_source;
  }
  return nullptr;
}

const Error* FrameState::add_sp(std::int64_t value) noexcept {
  if (is_alias_) return &k_alias_state;
  if (has_slot_) slot_ = minus(slot_, value);
  if (sp_off_) {
    *sp_off_ = minus(*sp_off_, value);
    return nullptr;
  }
  for (std::uint64_t left = changed_; left != 0; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    if (places_[c] == Place::at_sp) values_[c] = minus(values_[c], value);
  }
  return nullptr;
}

/// Values relative to SP are lost with it.
const Error* FrameState::lose_sp() noexcept {
  if (is_alias_) return &k_alias_state;
  sp_off_.reset();
  has_slot_ = false;
  for (std::uint64_t left = changed_; left != 0; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    if (places_[c] == Place::at_sp) places_[c] = Place::undefined;
  }
  return nullptr;
}

const Error* FrameState::set_fp(RegNum fp) noexcept {
  if (is_alias_) return &k_alias_state;
  if (!sp_off_) return &k_unknown_sp;
  fp_ = fp;
  fp_off_ = *sp_off_;
  return nullptr;
}

const Error* FrameState::add(RegNum reg, std::int64_t value) noexcept {
  if (is_alias_) return &k_alias_state;
  if (fp_ != k_no_reg && reg == fp_) {
    fp_off_ = minus(fp_off_, value);
  } else if (arch_->sign_state != k_no_reg && reg == arch_->sign_state) {
    ra_signed_ ^= (value & 1) != 0;
  } else {
    return &k_other_register;
  }
  return nullptr;
}

const Error* FrameState::lose(RegNum reg) noexcept {
  const Error* const unknown = add(reg, 0);
  if (!unknown && reg == fp_) end_fp();
  return unknown;
}

/// Slots in [old SP, new SP) are free again: the register holds the caller's value. If the old SP is unknown, every
/// slot below the new one is free, and so is every slot that was relative to the old one.
void FrameState::settle_freed(std::optional<std::int64_t> old_sp_off) noexcept {
  const std::int64_t sp = minus(0, *sp_off_);
  const std::size_t ra = column(arch_->ra);
  for (std::uint64_t left = changed_; left != 0; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    const bool in_freed_part =
        places_[c] == Place::at_cfa && values_[c] < sp && (!old_sp_off || values_[c] >= minus(0, *old_sp_off));
    if (places_[c] != Place::at_sp && !in_freed_part) continue;
    if (c == ra && ra_at_entry()) continue;
    places_[c] = Place::same;
    if (fp_ != k_no_reg && c == column(fp_)) end_fp();
  }
}

const Error* FrameState::save(const Anchor& anchor, RegNum reg, RegNum in) noexcept {
  if (reg != in) {
    put(reg, Place::in_reg, in);
    return nullptr;
  }
  put(reg, Place::same, 0);
  if (anchor.fp == reg) end_fp();
  return nullptr;
}

const Error* FrameState::spill_sp(const Anchor& anchor, RegNum reg, std::int64_t offset) noexcept {
  if (is_alias_) return &k_alias_state;
  if (reg == arch_->sp) {
    // The slot has a copy of the frame pointer, or else of SP itself. If neither is known, its value is unknown.
    has_slot_ = anchor.fp != k_no_reg || anchor.sp_off;
    slot_ = offset;
    slot_off_ = anchor.fp != k_no_reg ? anchor.fp_off : anchor.sp_off.value_or(0);
    end_fp();
  } else if (anchor.sp_off) {
    put(reg, Place::at_cfa, minus(offset, *anchor.sp_off));
  } else {
    put(reg, Place::at_sp, offset);
  }
  return nullptr;
}

const Error* FrameState::spill_fp(const Anchor& anchor, RegNum reg, std::int64_t offset) noexcept {
  if (is_alias_) return &k_alias_state;
  if (anchor.fp == k_no_reg) return &k_no_frame_pointer;
  put(reg, Place::at_cfa, minus(offset, anchor.fp_off));
  return nullptr;
}

const Error* FrameState::pop_frames() noexcept {
  if (is_alias_) return &k_alias_state;
  const std::optional<std::int64_t> old = sp_off_;
  sp_off_ = arch_->entry_cfa;
  has_slot_ = false;
  end_fp();
  settle(old);
  return nullptr;
}

const Error* FrameState::judge_set_fp(RegNum set) noexcept {
  if (is_alias_ || set != fp_) return nullptr;
  const std::size_t c = column(set);
  if (changed(c) && places_[c] != Place::same) return nullptr;
  if (set != arch_->ra && !arch_->by_dwarf(set)->preserved) return nullptr;
  put(set, Place::undefined, 0);
  return &k_clobbered;
}

const Error* FrameState::judge_high_sp() const noexcept { return ra_at_entry() ? &k_sp_too_high : nullptr; }

void FrameState::become_alias(Addr at) noexcept {
  is_alias_ = true;
  alias_ = at;
  changed_ = 0;
  sp_off_.reset();
  has_slot_ = ra_signed_ = false;
  end_fp();
}

void FrameState::add_changes(const FrameState& later) noexcept {
  for (std::uint64_t left = later.changed_; left != 0; left &= left - 1) {
    const auto c = static_cast<std::size_t>(std::countr_zero(left));
    places_[c] = later.places_[c];
    values_[c] = later.values_[c];
  }
  changed_ |= later.changed_;
}

std::optional<std::int64_t> FrameState::slot_from_cfa(RegNum reg) const noexcept {
  const std::size_t c = column(reg);
  if (!changed(c) || places_[c] != Place::at_cfa) return std::nullopt;
  return values_[c];
}

std::optional<std::int64_t> FrameState::slot_above_sp(RegNum reg) const noexcept {
  const std::size_t c = column(reg);
  if (changed(c) && places_[c] == Place::at_sp) return values_[c];
  const auto slot = slot_from_cfa(reg);
  return slot && sp_off_ ? std::optional(plus(*slot, *sp_off_)) : std::nullopt;
}

RegRule FrameState::rule_at(std::size_t column) const noexcept {
  switch (places_[column]) {
    case Place::same:
      break;
    case Place::undefined:
      return RegRule::undefined();
    case Place::at_cfa:
      return RegRule::at_cfa(values_[column]);
    case Place::at_sp:
      return RegRule::at_reg(arch_->sp, values_[column]);
    case Place::in_reg:
      return RegRule::in_reg(static_cast<RegNum>(values_[column]));
  }
  return {};
}

Status FrameState::make_row(FrameRow& out) const noexcept {
  if (fp_ != k_no_reg)
    out.cfa = CfaRule::at(fp_, fp_off_);
  else if (has_slot_)
    out.cfa = CfaRule::deref(arch_->sp, slot_, slot_off_);
  else if (sp_off_)
    out.cfa = CfaRule::at(arch_->sp, *sp_off_);
  else
    return Error{ErrorCode::e_sp_lost, 0, "SP relation lost and no frame pointer"};
  out.ra = arch_->ra;
  out.clear_rules();
  if (const Status changed = change_row(out); !changed) return changed;
  if (ra_signed_ && !out.set(arch_->sign_state, RegRule::constant(1)))
    return Error{ErrorCode::row_too_wide, 0, "register rules of a row"};
  return Done{};
}

Status FrameState::change_row(FrameRow& row) const noexcept {
  for (std::uint64_t left = changed_; left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    const RegNum reg = arch_->by_column(c)->dwarf;
    if (is_alias_ && row.cfa.reg == reg) return k_alias_state;
    if (!row.set(reg, rule_at(static_cast<std::size_t>(c))))
      return Error{ErrorCode::row_too_wide, 0, "register rules of a row"};
  }
  return Done{};
}

}  // namespace jitunwind
