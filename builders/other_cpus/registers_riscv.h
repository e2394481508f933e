// The named registers of RISC-V with 64 bits, and riscv::describe(), which begins a description of its code.
#pragma once

#include <string_view>

#include "jitunwind/builders/procedure_builder.h"

#pragma GCC visibility push(default)
namespace jitunwind::riscv {

/// The compile-time properties of the instruction set that the builder needs; the CPU's table has all others.
struct Cpu {
  static const Arch& arch() noexcept { return jitunwind::arch::riscv; }  ///< the table of this CPU
  static constexpr bool k_has_push = false;
  static constexpr bool k_has_pairs = false;
  static constexpr bool k_signs_return_address = false;
};

using Reg = CpuRegister<Cpu>;
using Builder = ProcedureBuilder<Cpu>;
using Marks = ProcedureBuilder<Cpu, MarkRecorder>;

inline constexpr Reg x0{0};
inline constexpr Reg x1{1};  ///< the return address
inline constexpr Reg sp{2}, x3{3}, x4{4}, x5{5}, x6{6}, x7{7};
inline constexpr Reg x8{8};  ///< the frame pointer
inline constexpr Reg x9{9}, x10{10}, x11{11}, x12{12}, x13{13}, x14{14}, x15{15}, x16{16}, x17{17}, x18{18}, x19{19};
inline constexpr Reg x20{20}, x21{21}, x22{22}, x23{23}, x24{24}, x25{25}, x26{26}, x27{27}, x28{28}, x29{29};
inline constexpr Reg x30{30}, x31{31}, f0{32}, f1{33}, f2{34}, f3{35}, f4{36}, f5{37}, f6{38}, f7{39}, f8{40}, f9{41};
inline constexpr Reg f10{42}, f11{43}, f12{44}, f13{45}, f14{46}, f15{47}, f16{48}, f17{49}, f18{50}, f19{51};
inline constexpr Reg f20{52}, f21{53}, f22{54}, f23{55}, f24{56}, f25{57}, f26{58}, f27{59}, f28{60}, f29{61};
inline constexpr Reg f30{62}, f31{63}, pc{64};

/// Begins the description of a procedure; builders/procedure_builder.h.
inline Builder describe(std::string_view name = {}) { return Builder(name); }

}  // namespace jitunwind::riscv
#pragma GCC visibility pop
