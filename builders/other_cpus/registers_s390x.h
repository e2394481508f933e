// The named registers of z/Architecture with 64 bits, and s390x::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::s390x {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::s390x; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg r0{0}, r1{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9}, r10{10};
inline constexpr Reg r11{11};  ///< the frame pointer
inline constexpr Reg r12{12}, r13{13};
inline constexpr Reg r14{14};  ///< the return address
inline constexpr Reg r15{15}, f0{16}, f2{17}, f4{18}, f6{19}, f1{20}, f3{21}, f5{22}, f7{23}, f8{24}, f10{25};
inline constexpr Reg f12{26}, f14{27}, f9{28}, f11{29}, f13{30}, f15{31}, pswa{65};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::s390x
#pragma GCC visibility pop
