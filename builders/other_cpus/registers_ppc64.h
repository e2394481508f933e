// The named registers of PowerPC with 64 bits, and ppc64::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::ppc64 {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::ppc64; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg r0{0}, sp{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9}, r10{10}, r11{11}, r12{12};
inline constexpr Reg r13{13}, r14{14}, r15{15}, r16{16}, r17{17}, r18{18}, r19{19}, r20{20}, r21{21}, r22{22};
inline constexpr Reg r23{23}, r24{24}, r25{25}, r26{26}, r27{27}, r28{28}, r29{29}, r30{30};
inline constexpr Reg r31{31};  ///< the frame pointer
inline constexpr Reg f0{32}, f1{33}, f2{34}, f3{35}, f4{36}, f5{37}, f6{38}, f7{39}, f8{40}, f9{41}, f10{42}, f11{43};
inline constexpr Reg f12{44}, f13{45}, f14{46}, f15{47}, f16{48}, f17{49}, f18{50}, f19{51}, f20{52}, f21{53};
inline constexpr Reg f22{54}, f23{55}, f24{56}, f25{57}, f26{58}, f27{59}, f28{60}, f29{61}, f30{62}, f31{63};
inline constexpr Reg lr{65};  ///< the link register, which holds the return address
inline constexpr Reg ctr{66}, nip{67}, cr2{70}, cr3{71}, cr4{72}, v0{77}, v1{78}, v2{79}, v3{80}, v4{81}, v5{82};
inline constexpr Reg v6{83}, v7{84}, v8{85}, v9{86}, v10{87}, v11{88}, v12{89}, v13{90}, v14{91}, v15{92}, v16{93};
inline constexpr Reg v17{94}, v18{95}, v19{96}, v20{97}, v21{98}, v22{99}, v23{100}, v24{101}, v25{102}, v26{103};
inline constexpr Reg v27{104}, v28{105}, v29{106}, v30{107}, v31{108};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::ppc64
#pragma GCC visibility pop
