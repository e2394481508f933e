// The frame at one instruction of code that xbyak has written, and the effect of an instruction on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/unwind_core/arch/instruction.h"

#pragma GCC visibility push(default)
namespace jitunwind::xbyak {

/// Places are distances: CFA - address, in bytes.
struct FrameState {
  static constexpr std::int64_t k_entry = 8;  ///< SP at the first instruction: the return address is there
  static constexpr std::int64_t k_no_place = std::numeric_limits<std::int64_t>::min();
  /// The registers that calls preserve, but SP (psABI, figure 3.4).
  static constexpr auto k_preserved = [] {
    std::array<RegNum, 6> out{};
    std::size_t n = 0;
#define JITUNWIND_REGISTER(dwarf, name, text, register_class, preserved, ...) \
  if (preserved) out[n++] = dwarf;
#include "jitunwind/unwind_core/arch/tables/x86_64_registers.def"
#undef JITUNWIND_REGISTER
    return out;
  }();

  std::int64_t sp = k_entry;     ///< the last known place; where is_sp_known is false the frame is found by rbp
  std::int64_t fp = k_no_place;  ///< of the address in rbp, if it is one of this frame
  std::array<std::int64_t, k_preserved.size()> slots{};  ///< of the caller's values; 0: not saved
  bool is_sp_known = true;
  std::uint32_t changed = 0;  ///< preserved registers that have other values, a bit for each number; known for some

  /// Whether rows are the same.
  friend bool operator==(const FrameState& a, const FrameState& b) noexcept {
    return a.is_sp_known == b.is_sp_known && a.slots == b.slots && (a.is_sp_known ? a.sp == b.sp : a.fp == b.fp);
  }
  /// Whether a callee, or the caller, may go on from here.
  bool is_released() const noexcept { return is_sp_known && sp == k_entry; }

  /// Executes one instruction, but for the flow of control. Returns the reason why its effect cannot be described, with
  /// static storage duration; null: it is described.
  const char* execute(const MachineInstruction& i) noexcept;

 private:
  static constexpr RegNum k_fp = x86_64::rbp.dwarf(), k_sp = x86_64::rsp.dwarf();

  static constexpr std::size_t index_of(RegNum reg) noexcept {
    return static_cast<std::size_t>(std::find(k_preserved.begin(), k_preserved.end(), reg) - k_preserved.begin());
  }
  static constexpr bool is_preserved(RegNum reg) noexcept { return index_of(reg) < k_preserved.size(); }
  static constexpr std::uint32_t bit(RegNum reg) noexcept { return std::uint32_t{1} << reg; }
  bool has_changed(RegNum reg) const noexcept { return (changed & bit(reg)) != 0; }

  static constexpr bool is_of_frame(const MachineInstruction& i) noexcept {
    return (i.base == k_fp || i.base == k_sp) && i.index == k_no_reg;
  }
  /// The place base + amount; k_no_place: unknown.
  std::int64_t place(const MachineInstruction& i) const noexcept {
    const std::int64_t from = !is_of_frame(i) ? k_no_place : i.base == k_fp ? fp : is_sp_known ? sp : k_no_place;
    return from == k_no_place ? k_no_place : from - i.amount;
  }
  const char* save(RegNum reg, std::int64_t at) noexcept {
    if (!is_preserved(reg) || slots[index_of(reg)] != 0) return nullptr;
    if (at == k_no_place) return "saves a register at an unknown distance from the caller's frame";
    if (is_sp_known && at > sp) return "saves a register below rsp";
    return slots[index_of(reg)] = at, nullptr;
  }
  const char* overwrite(RegNum reg) noexcept {
    if (reg == k_sp) return lose_sp();
    if (!is_preserved(reg)) return nullptr;
    if (slots[index_of(reg)] == 0) return "overwrites a register that calls preserve, and that is not saved";
    if (reg == k_fp && !is_sp_known) return "overwrites rbp, by which the frame is found";
    if (reg == k_fp) fp = k_no_place;
    return changed |= bit(reg), nullptr;
  }
  /// `reg` gets the value at this place.
  const char* load(RegNum reg, std::int64_t from) noexcept {
    const bool is_its_own = is_preserved(reg) && from != k_no_place && slots[index_of(reg)] == from;
    if (!is_its_own) return overwrite(reg);
    if (reg == k_fp && !is_sp_known) return "overwrites rbp, by which the frame is found";
    if (reg == k_fp) fp = k_no_place;
    return changed &= ~bit(reg), nullptr;
  }
  const char* lose_sp() noexcept {
    if (!is_sp_known) return nullptr;
    if (fp == k_no_place) return "moves rsp by an unknown amount, without a frame pointer in rbp";
    return is_sp_known = false, nullptr;
  }
  const char* move_sp(std::int64_t to) noexcept {
    if (to < k_entry) return "raises rsp above the return address";
    sp = to, is_sp_known = true;
    for (std::size_t n = 0; n < slots.size(); ++n) {
      if (slots[n] <= sp) continue;
      if (has_changed(k_preserved[n])) return "releases the slot of a register that does not have its value again";
      slots[n] = 0;
    }
    return nullptr;
  }
  const char* push(RegNum reg, std::int64_t bytes) noexcept {
    if (is_sp_known) sp += bytes;
    return save(reg, is_sp_known ? sp : k_no_place);
  }
  const char* pop(RegNum reg, std::int64_t bytes) noexcept {
    if (const char* reason = load(reg, is_sp_known ? sp : k_no_place)) return reason;
    return is_sp_known ? move_sp(sp - bytes) : nullptr;
  }
  const char* set(RegNum reg, std::int64_t to) noexcept {
    if (reg == k_sp)
      return to == k_no_place ? is_sp_known ? "loads rsp from rbp, which is no frame pointer" : nullptr : move_sp(to);
    if (is_sp_known || to == k_no_place) {
      if (const char* reason = overwrite(k_fp)) return reason;
    }
    return fp = to, nullptr;
  }
};

inline const char* FrameState::execute(const MachineInstruction& i) noexcept {
  using Effect = MachineInstruction::Effect;
  const char* reason = nullptr;
  switch (i.effect) {
    case Effect::unknown:
    case Effect::enter:
      return "is an instruction whose effect on the frame is not known";
    case Effect::push:
      reason = push(i.reg, i.amount);
      break;
    case Effect::pop:
      reason = pop(i.reg, i.amount);
      break;
    case Effect::set:
      reason = is_of_frame(i) && (i.reg == k_sp || i.reg == k_fp) ? set(i.reg, place(i)) : overwrite(i.reg);
      break;
    case Effect::exchange:
      reason = overwrite(i.reg);
      if (!reason) reason = overwrite(i.base);
      break;
    case Effect::store:
      if (is_of_frame(i)) reason = save(i.reg, place(i));
      break;
    case Effect::load:
      reason = load(i.reg, place(i));
      break;
    case Effect::leave:
      reason = fp == k_no_place ? "loads rsp from rbp, which is no frame pointer" : move_sp(fp);
      if (!reason) reason = pop(k_fp, i.amount);
      break;
    default:
      break;
  }
  if (i.written == 0) [[likely]]
    return reason;
  if (!reason && (i.written & bit(k_sp)) != 0) reason = lose_sp();
  for (const RegNum reg : k_preserved)
    if (!reason && (i.written & bit(reg)) != 0) reason = overwrite(reg);
  return reason;
}

}  // namespace jitunwind::xbyak
#pragma GCC visibility pop
