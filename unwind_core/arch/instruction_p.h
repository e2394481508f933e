// The readers of instructions, for the tables of CPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::arch {

inline MachineInstruction with_effect(MachineInstruction::Effect effect, RegNum reg = k_no_reg, std::int64_t amount = 0,
                                      RegNum base = k_no_reg) noexcept {
  MachineInstruction i;
  i.effect = effect;
  i.reg = reg;
  i.base = base;
  i.amount = amount;
  return i;
}
/// An instruction that only writes registers; a bit for each place.
inline MachineInstruction that_writes(std::uint32_t registers) noexcept {
  MachineInstruction i = with_effect(MachineInstruction::Effect::none);
  i.written = registers;
  return i;
}

[[gnu::visibility("default")]] MachineInstruction read_x86_instruction(std::span<const std::byte> bytes, Addr at) noexcept;
[[gnu::visibility("default")]] MachineInstruction read_x86_64_instruction(std::span<const std::byte> bytes, Addr at) noexcept;
[[gnu::visibility("default")]] MachineInstruction read_a64_instruction(std::span<const std::byte> bytes, Addr at) noexcept;

}  // namespace jitunwind::arch
