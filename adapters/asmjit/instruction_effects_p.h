// asmjit's instructions in the words of the trace: what each does to SP, to registers and to the stack.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

/// The DWARF number of an x86-64 general register that asmjit numbers as the instruction set does.
RegNum dwarf_of(std::uint32_t general_id) noexcept;
/// Registers of one of asmjit's masks, SP left out.
RegSet registers_of(std::uint64_t general_mask, std::uint64_t vector_mask) noexcept;

/// Appends the effects of an instruction of x86-64. What is not known to do less is taken to change all it may.
void append_effects(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand_> operands,
                    std::vector<Effect>& out);

/// The same of an instruction that does nothing but change registers. SP among them is lost.
void append_changes(std::span<const ::asmjit::Operand> registers, std::vector<Effect>& out);

/// General registers that the instruction changes although they are not among its operands, in any of its forms.
RegSet implicitly_written(std::uint32_t instruction) noexcept;

}  // namespace jitunwind::derivation
