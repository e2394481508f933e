// The named registers of every CPU of unwind_core/arch/arch_list.def, and arm::describe() and so on, which begin
// descriptions of its code. <jitunwind/jitunwind.h> has those of x86-64 and AArch64 alone.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registers_x86_64.h"

// The contents of each namespace, but for the registers, as those of registers_x86_64.h.
#define JITUNWIND_BUILDERS_OF(cpu, pushes)            \
  using Cpu = OtherCpu<jitunwind::arch::cpu, pushes>; \
  using Reg = CpuRegister<Cpu>;                       \
  using Builder = ProcedureBuilder<Cpu>;              \
  using Marks = ProcedureBuilder<Cpu, MarkRecorder>;  \
  inline Builder describe(std::string_view name = {}) { return Builder(name); }
#define JITUNWIND_REGISTER(dwarf, name, ...) inline constexpr Reg name{dwarf};

#pragma GCC visibility push(default)
namespace jitunwind {

/// The compile-time properties of an instruction set that the builder needs; the CPU's table has all others.
template <const Arch& table, bool pushes>
struct OtherCpu {
  static const Arch& arch() noexcept { return table; }  ///< the table of this CPU
  static constexpr bool k_has_push = pushes;            ///< push, pop, enter, leave; a call pushes the return address
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

namespace arm {  // with 32 bits
JITUNWIND_BUILDERS_OF(arm, false)
#include "jitunwind/unwind_core/arch/tables/arm_registers.def"
}  // namespace arm
namespace mips {  // with 64 bits
JITUNWIND_BUILDERS_OF(mips, false)
#include "jitunwind/unwind_core/arch/tables/mips_registers.def"
}  // namespace mips
namespace ppc64 {
JITUNWIND_BUILDERS_OF(ppc64, false)
#include "jitunwind/unwind_core/arch/tables/ppc64_registers.def"
}  // namespace ppc64
namespace riscv {  // with 64 bits
JITUNWIND_BUILDERS_OF(riscv, false)
#include "jitunwind/unwind_core/arch/tables/riscv_registers.def"
}  // namespace riscv
namespace s390x {
JITUNWIND_BUILDERS_OF(s390x, false)
#include "jitunwind/unwind_core/arch/tables/s390x_registers.def"
}  // namespace s390x
namespace x86 {  // with 32 bits
JITUNWIND_BUILDERS_OF(x86, true)
#include "jitunwind/unwind_core/arch/tables/x86_registers.def"
}  // namespace x86
#undef JITUNWIND_REGISTER
#undef JITUNWIND_BUILDERS_OF
}  // namespace jitunwind
#pragma GCC visibility pop
