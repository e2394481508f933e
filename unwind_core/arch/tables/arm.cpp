// ARM with 32 bits and the AAPCS32 (2024Q3), A32 and T32 code, Linux EABI: registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"

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
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/arm_registers.def"
#undef JITUNWIND_REGISTER
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
    .jump_slot = R_ARM_JUMP_SLOT,
    .glob_dat = R_ARM_GLOB_DAT,
    .word_size = 4,
    .unit = 4,
    .bi_endian = true,
    .stack_alignment = 8,
    .sp_granularity = 4,
    .sp = 13,
    .fp = 11,
    .ra = 14,
    .pc = 15,
    .address_mask = 0xffff'fffe,  // bit 0 marks T32
    .chain = {},                  // compilers disagree about the place to which the frame pointer points
    .sigframe_ucontext = k_ucontext,
    .in_context = columns_in_context(k_registers),
    .registers = k_registers,
    .trampolines = k_trampolines,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
    .relocations = &k_relocations,
};

}  // namespace jitunwind::arch
