// The named registers of x86 with 32 bits, and x86::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::x86 {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::x86; }  ///< the table of this CPU
  static constexpr bool k_has_push = true;  ///< push, pop, enter, leave; a call pushes the return address
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg eax{0}, ecx{1}, edx{2}, ebx{3}, esp{4};
inline constexpr Reg ebp{5};  ///< the frame pointer
inline constexpr Reg esi{6}, edi{7};
inline constexpr Reg eip{8};  ///< the return address
inline constexpr Reg st0{11}, st1{12}, st2{13}, st3{14}, st4{15}, st5{16}, st6{17}, st7{18}, xmm0{21}, xmm1{22};
inline constexpr Reg xmm2{23}, xmm3{24}, xmm4{25}, xmm5{26}, xmm6{27}, xmm7{28};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::x86
#pragma GCC visibility pop
