// The named registers of AArch64, and aarch64::describe(), which begins a description of AArch64 code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::aarch64 {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::aarch64; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = true;  ///< stp, ldp, pre- and post-indexed
  static constexpr bool k_signs_return_address = true;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

#define JITUNWIND_REGISTER(dwarf, name, ...) inline constexpr Reg name{dwarf};
#include "jitunwind/unwind_core/arch/tables/aarch64_registers.def"
#undef JITUNWIND_REGISTER

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::aarch64
#pragma GCC visibility pop
