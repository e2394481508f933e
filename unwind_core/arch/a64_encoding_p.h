// The words of AArch64's instructions, and the registers in them.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::arch::a64_code {

class Word {
 public:
  explicit constexpr Word(std::uint32_t bits) noexcept : bits_(bits) {}

  constexpr bool is(std::uint32_t mask, std::uint32_t value) const noexcept { return (bits_ & mask) == value; }
  constexpr bool bit(unsigned at) const noexcept { return (bits_ >> at & 1) != 0; }
  constexpr unsigned field(unsigned at, unsigned size) const noexcept { return bits_ >> at & ((1u << size) - 1); }
  constexpr std::int32_t signed_field(unsigned at, unsigned size) const noexcept {
    const std::int32_t sign = 1 << (size - 1);
    return (static_cast<std::int32_t>(field(at, size)) ^ sign) - sign;
  }

 private:
  std::uint32_t bits_;
};

// Number 31 is SP or no register. DWARF numbers (DWARF for the Arm 64-bit Architecture, 4.1): those of the
// instructions, and 64 more for vectors.
inline constexpr unsigned k_x29 = 29, k_x30 = 30, k_x31 = 31;
constexpr bool is_of_frame(unsigned code) { return code == k_x29 || code == k_x31; }
/// Registers that calls preserve (AAPCS64, 6.1.1 and 6.1.2), and the link register.
constexpr RegNum general_register(unsigned code) {
  return code >= 19 && code <= k_x30 ? static_cast<RegNum>(code) : k_no_reg;
}
constexpr RegNum vector_register(unsigned code) {
  return code >= 8 && code <= 15 ? static_cast<RegNum>(64 + code) : k_no_reg;
}
constexpr std::uint32_t bit_of(RegNum reg) { return reg == k_no_reg ? 0 : std::uint32_t{1} << place_of(reg); }
constexpr std::uint32_t bit_of_general(unsigned code) { return bit_of(general_register(code)); }
constexpr std::uint32_t bit_of_general_or_sp(unsigned code) {
  return code == k_x31 ? std::uint32_t{1} << k_x31 : bit_of_general(code);
}

}  // namespace jitunwind::arch::a64_code
