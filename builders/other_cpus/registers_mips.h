// The named registers of MIPS with 64 bits, and mips::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::mips {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::mips; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg r0{0}, r1{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9}, r10{10}, r11{11}, r12{12};
inline constexpr Reg r13{13}, r14{14}, r15{15}, r16{16}, r17{17}, r18{18}, r19{19}, r20{20}, r21{21}, r22{22};
inline constexpr Reg r23{23}, r24{24}, r25{25}, r26{26}, r27{27}, r28{28}, sp{29};
inline constexpr Reg r30{30};  ///< the frame pointer
inline constexpr Reg r31{31};  ///< the return address
inline constexpr Reg f0{32}, f1{33}, f2{34}, f3{35}, f4{36}, f5{37}, f6{38}, f7{39}, f8{40}, f9{41}, f10{42}, f11{43};
inline constexpr Reg f12{44}, f13{45}, f14{46}, f15{47}, f16{48}, f17{49}, f18{50}, f19{51}, f20{52}, f21{53};
inline constexpr Reg f22{54}, f23{55}, f24{56}, f25{57}, f26{58}, f27{59}, f28{60}, f29{61}, f30{62}, f31{63}, hi{64};
inline constexpr Reg lo{65}, pc{66};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::mips
#pragma GCC visibility pop
