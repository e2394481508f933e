// z/Architecture with 64 bits and the s390x psABI (1.6), Linux: registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext) is 40; psw mask, psw address, r0-r15, access registers, fpc, f0-f15
// (sys/ucontext.h). prstatus: s390_regs (asm/ptrace.h), the same order. Vector: NT_PRFPREG's f0-f15 after fpc. perf:
// enum perf_event_s390_regs (asm/perf_regs.h). DWARF numbers: psABI, table 1.23, in which even floating-point registers
// precede odd ones; libunwind's are in their own order. Unwind Express has no s390x ids: GR(n) = 0x100 + n, FR(n) =
// 0x200 + n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(40 + 16 + 8 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(16 + 8 * index); }
constexpr std::int16_t fpreg(int index) { return static_cast<std::int16_t>(8 + 8 * index); }

constexpr RegisterInfo k_registers[] = {
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/s390x_registers.def"
#undef JITUNWIND_REGISTER
};

// svc 173 and svc 119, in the vdso or in the signal frame. The latter serves handlers without SA_SIGINFO: the registers
// are at 176, after a register save area, a mask and a pointer (struct sigframe, arch/s390/kernel/signal.c).
constexpr std::uint8_t k_rt_sigreturn[] = {0x0a, 0xad};
constexpr std::uint8_t k_sigreturn[] = {0x0a, 0x77};
constexpr std::uint8_t k_exact[] = {0xff, 0xff};
constexpr std::int16_t k_ucontext = 296;  // after a register save area, svc and siginfo
constexpr CodePattern k_trampolines[] = {
    {k_rt_sigreturn, k_exact, 0, 0},
    {k_sigreturn, k_exact, 0, 176 - 40 - k_ucontext},
};

// brasl r14; bras r14; basr r14 with any register except r0, with which it does not jump.
constexpr std::uint8_t k_brasl[] = {0xc0, 0xe5, 0, 0, 0, 0};
constexpr std::uint8_t k_brasl_mask[] = {0xff, 0xff, 0, 0, 0, 0};
constexpr std::uint8_t k_bras[] = {0xa7, 0xe5, 0, 0};
constexpr std::uint8_t k_bras_mask[] = {0xff, 0xff, 0, 0};
constexpr std::uint8_t k_basr[] = {0x0d, 0xe0};
constexpr std::uint8_t k_basr_mask[] = {0xff, 0xf0};
constexpr CodePattern k_calls[] = {
    {k_brasl, k_brasl_mask, 6, 0},
    {k_bras, k_bras_mask, 4, 0},
    {k_basr, k_basr_mask, 2, 0},
};

constexpr RegNum k_exception_registers[] = {6, 7, 8, 9};  // r6-r9

}  // namespace

constinit const Arch s390x = {
    .name = "s390x",
    .elf_machine = EM_S390,
    .jump_slot = R_390_JMP_SLOT,
    .glob_dat = R_390_GLOB_DAT,
    .word_size = 8,
    .unit = 2,
    .big_endian = true,
    .stack_alignment = 8,
    .sp_granularity = 8,
    .caller_sp_bias = -160,  // the CFA is above the register save area, which is the caller's
    .sp = 15,
    .fp = 11,
    .ra = 14,
    .pc = 65,
    .entry_cfa = 160,
    .chain = {},               // the back chain is SP's
    .sigframe_ucontext = k_ucontext,
    .in_context = {},          // the psw has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
