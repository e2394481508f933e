// Translates asmjit's instructions to effects on SP, registers and the stack.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

/// The DWARF number of an x86-64 general register, from asmjit's number, which is the instruction set's.
RegNum dwarf_of(std::uint32_t general_id) noexcept;
/// Registers of one of asmjit's masks, without SP.
RegSet registers_of(std::uint64_t general_mask, std::uint64_t vector_mask) noexcept;

/// Appends the effects of an x86-64 instruction. An instruction that is not known to do less counts as changing
/// everything it may change.
void append_effects(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand_> operands,
                    std::vector<Effect>& out);

/// Appends the effects of an instruction that moves SP without naming it, or does not continue at the next one. False:
/// it is no such instruction.
bool append_stack_and_flow(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand> operands,
                           std::vector<Effect>& out);

/// The registers that are operands themselves.
RegSet named_registers(std::span<const ::asmjit::Operand> operands) noexcept;

/// Appends the effects of an instruction that only changes registers. SP among them is lost.
void append_changes(std::span<const ::asmjit::Operand> registers, std::vector<Effect>& out);

/// General registers that any form of the instruction changes without naming them as operands.
RegSet implicitly_written(std::uint32_t instruction) noexcept;

}  // namespace jitunwind::derivation
