// The way to the jump of a switch, followed with the few values that lead to its table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::arch {

/// The value of a register on the way to the jump.
struct SwitchValue {
  enum class Is : std::uint8_t {
    other,
    address,  ///< `table.at`
    bounded,  ///< less than `table.count`
    entry,    ///< of the table
    target,   ///< the code that an entry leads to
  };
  Is is = Is::other;
  JumpTable table{};

  static constexpr SwitchValue address(Addr at) noexcept { return {Is::address, {.at = at}}; }
  static constexpr SwitchValue bounded(std::uint64_t count) noexcept {
    if (count == 0 || count > JumpTable::k_longest) return {};
    return {Is::bounded, {.count = static_cast<std::uint32_t>(count)}};
  }
  /// An entry of the table at an address, that the index chooses.
  static constexpr SwitchValue entry(const SwitchValue& at, const SwitchValue& index) noexcept {
    if (at.is != Is::address) return {};
    const bool is_open = index.is != Is::bounded || at.table.is_open;
    const std::uint32_t count = index.is != Is::bounded ? JumpTable::k_longest : index.table.count;
    return {Is::entry, {.at = at.table.at, .base = at.table.at, .count = count, .is_open = is_open}};
  }
  JumpTable target_table() const noexcept { return is == Is::target ? table : JumpTable{}; }
};

/// A comparison of a register with a number.
struct SwitchBound {
  unsigned code;
  std::uint64_t number;
};

/// The registers before an instruction on the way, by the numbers that instructions have.
template <std::size_t k_count>
class SwitchRegisters {
 protected:
  /// Behind a branch: the register is at most, or less than, what it was compared with. Bounds before other branches may
  /// be those of something else.
  void bound(bool is_at_most, bool is_less) noexcept {
    for (SwitchValue& known : registers_)
      if (known.is != SwitchValue::Is::address) known = {};
    if (!compared_ || !(is_at_most || is_less)) return;
    const unsigned origin = origins_[compared_->code];
    for (unsigned code = 0; code < k_count; ++code)
      if (code == compared_->code || (origin != 0 && origins_[code] == origin))
        registers_[code] = SwitchValue::bounded(compared_->number + (is_at_most ? 1 : 0));
  }
  void set(unsigned code, const SwitchValue& value) noexcept {
    registers_[code] = value;
    if (value.is == SwitchValue::Is::address) addresses_[code] = value.table.at;
  }
  /// The address that the register has, or else the last one that it had: compilers keep it over calls and jumps, and
  /// put it there in front of a loop. A table that is found by it is open.
  SwitchValue address_in(unsigned code) const noexcept {
    const SwitchValue& known = registers_[code];
    if (known.is == SwitchValue::Is::address || addresses_[code] == 0) return known;
    return {SwitchValue::Is::address, {.at = addresses_[code], .is_open = true}};
  }
  /// Both registers have the same value.
  void copy(unsigned to, unsigned from) noexcept {
    if (origins_[from] == 0) origins_[from] = ++last_origin_;
    origins_[to] = origins_[from];
  }

  std::array<SwitchValue, k_count> registers_{};
  std::array<Addr, k_count> addresses_{};    // the last in each register; 0: there was none
  std::array<unsigned, k_count> origins_{};  // registers with one number are copies; 0: of none
  unsigned last_origin_ = 0;
  std::optional<SwitchBound> compared_;
};

/// `Registers` has pass(code, instruction, at, is_taken), for each instruction but the last, and table_of(code) for that.
template <class Registers>
JumpTable find_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept {
  Registers registers;
  for (std::size_t n = 0; n < way.size(); ++n) {
    auto [code, at] = way[n];
    while (!code.empty()) {
      const MachineInstruction i = arch.read_instruction(code, at);
      if (i.length == 0 || i.length > code.size()) return {};
      const bool is_last = i.length == code.size(), is_jump = is_last && n + 1 == way.size();
      if (is_jump) return i.operand.kind == JumpOperand::Kind::value ? registers.table_of(code) : JumpTable{};
      registers.pass(code, i, at, is_last);
      at += i.length;
      code = code.subspan(i.length);
    }
  }
  return {};
}

}  // namespace jitunwind::arch
