// The named registers of x86-64, and x86_64::describe(), which begins a description of x86-64 code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::x86_64 {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::x86_64; }  ///< the table of this CPU
  static constexpr bool k_has_push = true;    ///< push, pop, enter, leave; a call pushes the return address
  static constexpr bool k_has_pairs = false;  ///< stp, ldp
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg rax{0}, rdx{1}, rcx{2}, rbx{3}, rsi{4}, rdi{5}, rbp{6}, rsp{7};
inline constexpr Reg r8{8}, r9{9}, r10{10}, r11{11}, r12{12}, r13{13}, r14{14}, r15{15};
inline constexpr Reg rip{16};  ///< the return address
inline constexpr Reg xmm0{17}, xmm1{18}, xmm2{19}, xmm3{20}, xmm4{21}, xmm5{22}, xmm6{23}, xmm7{24};
inline constexpr Reg xmm8{25}, xmm9{26}, xmm10{27}, xmm11{28}, xmm12{29}, xmm13{30}, xmm14{31}, xmm15{32};
/// The general register that instructions name by `encoding`, below 16: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 ...
constexpr Reg general(unsigned encoding) noexcept { return Reg{jitunwind::arch::x86_64_general(encoding)}; }

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::x86_64
#pragma GCC visibility pop
