// The state that directives act on (docs/directives.md "Frame state") and the effect of one instruction on it. It knows
// no regions, labels or times.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind {

/// CFA, one rule for each register, and the signature of the return address. Plain data; offsets wrap around instead of
/// overflowing.
///
/// Directives of one instruction are applied in this order, whatever their order in the list: reload_sp, add_sp,
/// set_fp, add, settle, then save, spill_sp and spill_fp, then pop_frames, then judge. Each function returns null, or
/// the directive's error, and then leaves the state as it was. Error::at is 0, and the error is a constant.
class [[gnu::visibility("default")]] FrameState {
 public:
  /// SP and FP as the saves of one instruction use them; the saves may end the frame pointer, in any order.
  struct Anchor {
    std::optional<std::int64_t> sp_off;
    RegNum fp = k_no_reg;
    std::int64_t fp_off = 0;
  };

  /// The state at a procedure's first instruction.
  explicit FrameState(const Arch& arch) noexcept;

  const Error* reload_sp(RegNum from) noexcept;
  const Error* add_sp(std::int64_t value) noexcept;
  const Error* lose_sp() noexcept;
  const Error* set_fp(RegNum fp) noexcept;
  const Error* add(RegNum reg, std::int64_t value) noexcept;
  const Error* lose(RegNum reg) noexcept;
  /// The deallocation rule: SP was CFA - old_sp_off when the instruction began.
  void settle(std::optional<std::int64_t> old_sp_off) noexcept {
    if (!is_alias_ && sp_off_ && (!old_sp_off || *sp_off_ < *old_sp_off)) settle_freed(old_sp_off);
  }

  Anchor anchor() const noexcept { return {sp_off_, fp_, fp_off_}; }
  const Error* save(const Anchor& anchor, RegNum reg, RegNum in) noexcept;
  const Error* spill_sp(const Anchor& anchor, RegNum reg, std::int64_t offset) noexcept;
  const Error* spill_fp(const Anchor& anchor, RegNum reg, std::int64_t offset) noexcept;
  const Error* pop_frames() noexcept;

  /// Judges the register that became frame pointer in this instruction; k_no_reg: none did. Error e_fp_clobber: it was
  /// not saved before, and the caller's value is lost from now on.
  const Error* judge_fp(RegNum set) noexcept { return set == k_no_reg ? nullptr : judge_set_fp(set); }
  const Error* judge_sp() const noexcept {
    return is_alias_ || !sp_off_ || *sp_off_ >= arch_->entry_cfa ? nullptr : judge_high_sp();
  }

  /// Becomes the row at another address, which is not looked up yet.
  void become_alias(Addr at) noexcept;
  /// Precondition: both alias(). Adds the changes of registers after another ALIAS that led here.
  void add_changes(const FrameState& later) noexcept;
  std::optional<Addr> alias() const noexcept { return is_alias_ ? std::optional(alias_) : std::nullopt; }

  std::optional<std::int64_t> sp_off() const noexcept { return sp_off_; }
  RegNum fp() const noexcept { return fp_; }
  /// Whether the rule of the return address is still that of the entry.
  bool ra_at_entry() const noexcept;
  /// The CFA cannot be computed.
  bool is_lost() const noexcept { return !is_alias_ && fp_ == k_no_reg && !has_slot_ && !sp_off_; }
  /// The distance of a slot from SP, if it is given relative to the CFA and the distance of SP is known.
  std::optional<std::int64_t> slot_above_sp(RegNum reg) const noexcept;
  /// Offset of a register's slot from the CFA.
  std::optional<std::int64_t> slot_from_cfa(RegNum reg) const noexcept;

  /// Precondition: not alias(). Error e_sp_lost. Fills CFA, rules and return address column, nothing else.
  Status make_row(FrameRow & out) const noexcept;
  /// Precondition: alias(). `row` is that of the aliased address; applies the changes of the directives after the
  /// ALIAS.
  Status change_row(FrameRow & row) const noexcept;

 private:
  enum class Place : std::uint8_t { same, undefined, at_cfa, at_sp, in_reg };

  std::size_t column(RegNum reg) const noexcept { return static_cast<std::size_t>(arch_->column(reg)); }
  Place place(RegNum reg) const noexcept { return places_[column(reg)]; }
  void put(RegNum reg, Place place, std::int64_t value) noexcept {
    const std::size_t c = column(reg);
    changed_ |= std::uint64_t{1} << c;
    places_[c] = place;
    values_[c] = value;
  }
  void settle_freed(std::optional<std::int64_t> old_sp_off) noexcept;
  const Error* judge_set_fp(RegNum set) noexcept;
  const Error* judge_high_sp() const noexcept;
  void end_fp() noexcept { fp_ = k_no_reg; }
  RegRule rule_at(std::size_t column) const noexcept;
  bool changed(std::size_t column) const noexcept { return (changed_ >> column & 1) != 0; }

  const Arch* arch_;
  std::optional<std::int64_t> sp_off_;  // CFA - SP
  std::int64_t fp_off_ = 0;             // CFA - fp
  std::int64_t slot_ = 0;               // *(SP + slot_) is a copy of SP,
  std::int64_t slot_off_ = 0;           // CFA - (that copy)
  Addr alias_ = 0;
  std::uint64_t changed_ = 0;  // columns that a directive wrote; the others are as at entry, or as in the alias
  RegNum fp_ = k_no_reg;
  bool has_slot_ = false;
  bool is_alias_ = false;
  bool ra_signed_ = false;
  std::array<Place, k_max_columns> places_;         // uninitialised if not changed_
  std::array<std::int64_t, k_max_columns> values_;  // offset, or DWARF number
};

}  // namespace jitunwind
