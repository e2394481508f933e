// ARM with 32 bits and the AAPCS32 (2024Q3), A32 and T32 code, Linux EABI: registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/data_relocations_internal.h"
#include "jitunwind/unwind_core/arch/tables/context_columns_p.h"

#if defined(__arm__) && !defined(__ARMEB__)
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext) is 20; struct sigcontext (asm/sigcontext.h) is trap_no, error_code,
// oldmask, r0-r15. prstatus: struct pt_regs (asm/ptrace.h), r0-r15. perf: enum perf_event_arm_regs (asm/perf_regs.h).
// DWARF numbers: DWARF for the Arm Architecture, table 1; libunwind's are the same. Unwind Express has no ARM ids:
// GR(n) = 0x100 + n, FR(n) = 0x200 + n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(20 + 12 + 4 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(4 * index); }
// NT_ARM_VFP: struct user_vfp (asm/user.h), d0-d31. NT_PRFPREG has registers of a coprocessor that does not exist any
// more.
constexpr std::int16_t vfp(int index) { return static_cast<std::int16_t>(8 * index); }

constexpr RegisterInfo k_registers[] = {
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    {0, "r0", "r0", general, false, 0, 0, greg(0), user(0), 0x100, 0},
    {1, "r1", "r1", general, false, 1, 1, greg(1), user(1), 0x101, 1},
    {2, "r2", "r2", general, false, 2, 2, greg(2), user(2), 0x102, 2},
    {3, "r3", "r3", general, false, 3, 3, greg(3), user(3), 0x103, 3},
    {4, "r4", "r4", general, true, 4, 4, greg(4), user(4), 0x104, 4},
    {5, "r5", "r5", general, true, 5, 5, greg(5), user(5), 0x105, 5},
    {6, "r6", "r6", general, true, 6, 6, greg(6), user(6), 0x106, 6},
    {7, "r7", "r7", general, true, 7, 7, greg(7), user(7), 0x107, 7},
    {8, "r8", "r8", general, true, 8, 8, greg(8), user(8), 0x108, 8},
    {9, "r9", "r9", general, true, 9, 9, greg(9), user(9), 0x109, 9},
    {10, "r10", "r10", general, true, 10, 10, greg(10), user(10), 0x10a, 10},
    {11, "r11", "r11", general, true, 11, 11, greg(11), user(11), 0x10b, 11},
    {12, "r12", "r12", general, false, 12, 12, greg(12), user(12), 0x10c, 12},
    {13, "sp", "r13", general, false, 13, 13, greg(13), user(13), 0x10d, 13},
    {14, "lr", "r14", general, false, 14, 14, greg(14), user(14), 0x10e, 14},
    {15, "pc", "r15", general, false, 15, 15, greg(15), user(15), 0x10f, 15},
    {256, "d0", "d0", vector, false, -1, 256, -1, vfp(0), 0x200},
    {257, "d1", "d1", vector, false, -1, 257, -1, vfp(1), 0x201},
    {258, "d2", "d2", vector, false, -1, 258, -1, vfp(2), 0x202},
    {259, "d3", "d3", vector, false, -1, 259, -1, vfp(3), 0x203},
    {260, "d4", "d4", vector, false, -1, 260, -1, vfp(4), 0x204},
    {261, "d5", "d5", vector, false, -1, 261, -1, vfp(5), 0x205},
    {262, "d6", "d6", vector, false, -1, 262, -1, vfp(6), 0x206},
    {263, "d7", "d7", vector, false, -1, 263, -1, vfp(7), 0x207},
    {264, "d8", "d8", vector, true, 16, 264, -1, vfp(8), 0x208},
    {265, "d9", "d9", vector, true, 17, 265, -1, vfp(9), 0x209},
    {266, "d10", "d10", vector, true, 18, 266, -1, vfp(10), 0x20a},
    {267, "d11", "d11", vector, true, 19, 267, -1, vfp(11), 0x20b},
    {268, "d12", "d12", vector, true, 20, 268, -1, vfp(12), 0x20c},
    {269, "d13", "d13", vector, true, 21, 269, -1, vfp(13), 0x20d},
    {270, "d14", "d14", vector, true, 22, 270, -1, vfp(14), 0x20e},
    {271, "d15", "d15", vector, true, 23, 271, -1, vfp(15), 0x20f},
    {272, "d16", "d16", vector, false, -1, 272, -1, vfp(16), 0x210},
    {273, "d17", "d17", vector, false, -1, 273, -1, vfp(17), 0x211},
    {274, "d18", "d18", vector, false, -1, 274, -1, vfp(18), 0x212},
    {275, "d19", "d19", vector, false, -1, 275, -1, vfp(19), 0x213},
    {276, "d20", "d20", vector, false, -1, 276, -1, vfp(20), 0x214},
    {277, "d21", "d21", vector, false, -1, 277, -1, vfp(21), 0x215},
    {278, "d22", "d22", vector, false, -1, 278, -1, vfp(22), 0x216},
    {279, "d23", "d23", vector, false, -1, 279, -1, vfp(23), 0x217},
    {280, "d24", "d24", vector, false, -1, 280, -1, vfp(24), 0x218},
    {281, "d25", "d25", vector, false, -1, 281, -1, vfp(25), 0x219},
    {282, "d26", "d26", vector, false, -1, 282, -1, vfp(26), 0x21a},
    {283, "d27", "d27", vector, false, -1, 283, -1, vfp(27), 0x21b},
    {284, "d28", "d28", vector, false, -1, 284, -1, vfp(28), 0x21c},
    {285, "d29", "d29", vector, false, -1, 285, -1, vfp(29), 0x21d},
    {286, "d30", "d30", vector, false, -1, 286, -1, vfp(30), 0x21e},
    {287, "d31", "d31", vector, false, -1, 287, -1, vfp(31), 0x21f},
};

// The patterns are mov r7,#173; svc in A32 and in T32 (arch/arm/kernel/sigreturn_codes.S, whose svc has the number of
// the old ABI, or 0), and the C library's __default_rt_sa_restorer. Handlers without SA_SIGINFO return to the same code
// with 119: their frame is a ucontext_t (struct sigframe, arch/arm/kernel/signal.h).
constexpr std::uint8_t k_rt_sigreturn[] = {0xad, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef};
constexpr std::uint8_t k_rt_sigreturn_thumb[] = {0xad, 0x27, 0x00, 0xdf};
constexpr std::uint8_t k_rt_sigreturn_library[] = {0x4f, 0xf0, 0xad, 0x07, 0x00, 0xdf};
constexpr std::uint8_t k_sigreturn[] = {0x77, 0x70, 0xa0, 0xe3, 0x00, 0x00, 0x00, 0xef};
constexpr std::uint8_t k_sigreturn_thumb[] = {0x77, 0x27, 0x00, 0xdf};
constexpr std::uint8_t k_sigreturn_library[] = {0x4f, 0xf0, 0x77, 0x07, 0x00, 0xdf};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
// The bytes are the same if data has the other byte order: code is little-endian on all CPUs from ARMv6 on (BE8).
constexpr std::uint8_t k_rt_sigreturn_big[] = {0xe3, 0xa0, 0x70, 0xad, 0xef, 0x90, 0x00, 0xad};
constexpr std::uint8_t k_sigreturn_big[] = {0xe3, 0xa0, 0x70, 0x77, 0xef, 0x90, 0x00, 0x77};
constexpr std::uint8_t k_rt_svc_mask[] = {0xff, 0xff, 0xff, 0xff, 0x52, 0xff, 0x6f, 0xff};  // 0 or 0x9000ad
constexpr std::uint8_t k_svc_mask[] = {0xff, 0xff, 0xff, 0xff, 0x88, 0xff, 0x6f, 0xff};     // 0 or 0x900077
constexpr std::int16_t k_ucontext = 128;  // after struct siginfo
constexpr CodePattern k_trampolines[] = {
    {k_rt_sigreturn, k_rt_svc_mask, 0, 0},
    {k_rt_sigreturn, k_rt_svc_mask, 4, 0},
    {k_rt_sigreturn_thumb, std::span(k_exact).first(4), 0, 0},
    {k_rt_sigreturn_thumb, std::span(k_exact).first(4), 2, 0},
    {k_rt_sigreturn_library, std::span(k_exact).first(6), 0, 0},
    {k_rt_sigreturn_library, std::span(k_exact).first(6), 4, 0},
    {k_rt_sigreturn_big, k_exact, 0, 0},
    {k_rt_sigreturn_big, k_exact, 4, 0},
    {k_sigreturn_big, k_exact, 0, -k_ucontext},
    {k_sigreturn_big, k_exact, 4, -k_ucontext},
    {k_sigreturn, k_svc_mask, 0, -k_ucontext},
    {k_sigreturn, k_svc_mask, 4, -k_ucontext},
    {k_sigreturn_thumb, std::span(k_exact).first(4), 0, -k_ucontext},
    {k_sigreturn_thumb, std::span(k_exact).first(4), 2, -k_ucontext},
    {k_sigreturn_library, std::span(k_exact).first(6), 0, -k_ucontext},
    {k_sigreturn_library, std::span(k_exact).first(6), 4, -k_ucontext},
};

// A32: bl, blx to a label, blx to a register. T32: bl, blx to a label, blx to a register. (Arm ARM for A-profile, F5.)
constexpr std::uint8_t k_bl[] = {0, 0, 0, 0x0b};
constexpr std::uint8_t k_bl_mask[] = {0, 0, 0, 0x0f};
constexpr std::uint8_t k_blx[] = {0, 0, 0, 0xfa};
constexpr std::uint8_t k_blx_mask[] = {0, 0, 0, 0xfe};
constexpr std::uint8_t k_blx_register[] = {0x30, 0xff, 0x2f, 0x01};
constexpr std::uint8_t k_blx_register_mask[] = {0xf0, 0xff, 0xff, 0x0f};
constexpr std::uint8_t k_thumb_bl[] = {0, 0xf0, 0, 0xc0};
constexpr std::uint8_t k_thumb_bl_mask[] = {0, 0xf8, 0, 0xc0};
constexpr std::uint8_t k_thumb_blx_register[] = {0x80, 0x47};
constexpr std::uint8_t k_thumb_blx_register_mask[] = {0x87, 0xff};
constexpr CodePattern k_calls[] = {
    {k_bl, k_bl_mask, 4, 0},
    {k_blx, k_blx_mask, 4, 0},
    {k_blx_register, k_blx_register_mask, 4, 0},
    {k_thumb_bl, k_thumb_bl_mask, 4, 0},
    {k_thumb_blx_register, k_thumb_blx_register_mask, 2, 0},
};

constexpr RegNum k_exception_registers[] = {0, 1};  // r0, r1

constexpr DataRelocations k_relocations = {DataRelocations::k_none, R_ARM_ABS32, DataRelocations::k_none, R_ARM_REL32};

}  // namespace

constinit const Arch arm = {
    .name = "arm",
    .elf_machine = EM_ARM,
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_ARM_JUMP_SLOT,
    .glob_dat = R_ARM_GLOB_DAT,
    .word_size = 4,
    .unit = 4,
    .big_endian = false,
    .bi_endian = true,
    .stack_alignment = 8,
    .sp_granularity = 4,
    .red_zone = 0,
    .caller_sp_bias = 0,
    .sp = 13,
    .fp = 11,
    .ra = 14,
    .pc = 15,
    .sign_state = k_no_reg,
    .entry_cfa = 0,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = 0xffff'fffe,  // bit 0 marks T32
    .chain = {},                  // compilers disagree about the place to which the frame pointer points
    .sigframe_ucontext = k_ucontext,
    .in_context = columns_in_context(k_registers),
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = {},
    .calls = k_calls,
    .exception_registers = k_exception_registers,
    .relocations = &k_relocations,
};

}  // namespace jitunwind::arch
