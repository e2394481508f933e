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

inline constexpr Reg x0{0}, x1{1}, x2{2}, x3{3}, x4{4}, x5{5}, x6{6}, x7{7}, x8{8}, x9{9}, x10{10}, x11{11}, x12{12};
inline constexpr Reg x13{13}, x14{14}, x15{15}, x16{16}, x17{17}, x18{18}, x19{19}, x20{20}, x21{21}, x22{22}, x23{23};
inline constexpr Reg x24{24}, x25{25}, x26{26}, x27{27}, x28{28};
inline constexpr Reg x29{29};  ///< the frame pointer
inline constexpr Reg x30{30};  ///< the link register, which holds the return address
inline constexpr Reg sp{31}, pc{32}, ra_sign_state{34}, vg{46};
inline constexpr Reg v0{64}, v1{65}, v2{66}, v3{67}, v4{68}, v5{69}, v6{70}, v7{71}, v8{72}, v9{73}, v10{74}, v11{75};
inline constexpr Reg v12{76}, v13{77}, v14{78}, v15{79}, v16{80}, v17{81}, v18{82}, v19{83}, v20{84}, v21{85}, v22{86};
inline constexpr Reg v23{87}, v24{88}, v25{89}, v26{90}, v27{91}, v28{92}, v29{93}, v30{94}, v31{95};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::aarch64
#pragma GCC visibility pop
