// The named registers of ARM with 32 bits, and arm::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::arm {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::arm; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg r0{0}, r1{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9}, r10{10};
inline constexpr Reg r11{11};  ///< the frame pointer of A32 code; T32 code uses r7
inline constexpr Reg r12{12}, sp{13};
inline constexpr Reg lr{14};  ///< the link register, which holds the return address
inline constexpr Reg pc{15}, d0{256}, d1{257}, d2{258}, d3{259}, d4{260}, d5{261}, d6{262}, d7{263}, d8{264}, d9{265};
inline constexpr Reg d10{266}, d11{267}, d12{268}, d13{269}, d14{270}, d15{271}, d16{272}, d17{273}, d18{274};
inline constexpr Reg d19{275}, d20{276}, d21{277}, d22{278}, d23{279}, d24{280}, d25{281}, d26{282}, d27{283};
inline constexpr Reg d28{284}, d29{285}, d30{286}, d31{287};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::arm
#pragma GCC visibility pop
