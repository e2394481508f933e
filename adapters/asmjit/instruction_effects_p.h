// Translates asmjit's instructions to effects on SP, registers and the stack.
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

/// The DWARF number of an x86-64 general register, from asmjit's number, which is the instruction set's.
inline RegNum dwarf_of(std::uint32_t general_id) noexcept {
  return general_id < 16 ? arch::x86_64_general(general_id) : static_cast<RegNum>(general_id);
}
inline bool is_gp64(const ::asmjit::Operand_& op) noexcept {
  return op.signature() == ::asmjit::x86::rax.signature();  // that of all
}
/// The DWARF number of a vector register.
constexpr RegNum vector_register(std::uint32_t id) noexcept { return static_cast<RegNum>(17 + id); }
/// Operands as objects of their base class, which has the same members.
inline std::span<const ::asmjit::Operand_> as_base(std::span<const ::asmjit::Operand> operands) noexcept {
  const ::asmjit::Operand_* const first = operands.data();
  return {first, operands.size()};
}
/// Registers of one of asmjit's masks, without SP.
RegSet registers_of(std::uint64_t general_mask, std::uint64_t vector_mask) noexcept;

/// The effect of calls, jumps to labels, and returns that pop nothing, which leave the frame alone. False: it is
/// another instruction. `implicit`: its implicit_changes(), with SP or without.
bool flow_effect(std::uint32_t id, RegSet implicit, std::span<const ::asmjit::Operand_> operands, Effect& out) noexcept;
/// The effect of a mov of eight bytes or to memory, which may be the clobber of no register, and of the addition of a
/// constant. False: it is another instruction.
bool sum_effect(std::uint32_t id, std::span<const ::asmjit::Operand_> operands, Effect& out) noexcept;

/// Appends the effects of an x86-64 instruction. An instruction that is not known to do less counts as changing
/// everything it may change.
void append_effects(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand_> operands,
                    std::vector<Effect>& out);

/// Appends the effects of an instruction that moves SP without naming it, or does not continue at the next one. False:
/// it is no such instruction.
bool append_stack_and_flow(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand> operands,
                           std::vector<Effect>& out);

/// General registers that any form of an instruction, by its id, changes without naming them as operands. SP among
/// them: it moves SP, or does not continue at the next instruction, as append_stack_and_flow() says. The
/// first call throws std::bad_alloc if there is no memory; the next one tries again.
std::span<const RegSet> implicit_changes();

/// Sets of one general register each, by asmjit's numbers.
inline constexpr std::array<std::uint32_t, 16> k_general_sets = [] {
  std::array<std::uint32_t, 16> sets{};
  for (unsigned id = 0; id < sets.size(); ++id) sets[id] = std::uint32_t{1} << arch::x86_64_general(id);
  return sets;
}();

/// The registers that an instruction names.
struct NamedRegisters {
  RegSet operands = 0;  ///< operands themselves
  RegSet bases = 0;     ///< general registers that memory operands are relative to
};
/// Adds the general registers of one operand.
inline void add_general(const ::asmjit::Operand_& op, NamedRegisters& named) noexcept {
  namespace v = asmjit_version;
  if (v::is_gp(op))
    named.operands |= op.id() < 16 ? k_general_sets[op.id()] : 0;
  else if (v::is_mem(op) && v::has_base_register(op))
    named.bases |= k_general_sets[v::base_register(op) & 15];
}
inline NamedRegisters named_registers(std::span<const ::asmjit::Operand_> operands) noexcept {
  NamedRegisters named;
  for (const ::asmjit::Operand_& op : operands) {
    add_general(op, named);
    if (asmjit_version::is_vec(op) && op.id() < 16) named.operands |= set_of(vector_register(op.id()));
  }
  return named;
}
inline NamedRegisters named_registers(std::span<const ::asmjit::Operand> operands) noexcept {
  return named_registers(as_base(operands));
}

/// Appends the effects of an instruction that only changes registers. SP among them is lost.
void append_changes(std::span<const ::asmjit::Operand> registers, std::vector<Effect>& out);

}  // namespace jitunwind::derivation
