// z/Architecture with 64 bits and the s390x psABI (1.6), Linux: registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

#if defined(__s390x__)
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

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
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    {0, "r0", "R0", general, false, 0, 0, greg(0), user(0), 0x100, 0},
    {1, "r1", "R1", general, false, 1, 1, greg(1), user(1), 0x101, 1},
    {2, "r2", "R2", general, false, 2, 2, greg(2), user(2), 0x102, 2},
    {3, "r3", "R3", general, false, 3, 3, greg(3), user(3), 0x103, 3},
    {4, "r4", "R4", general, false, 4, 4, greg(4), user(4), 0x104, 4},
    {5, "r5", "R5", general, false, 5, 5, greg(5), user(5), 0x105, 5},
    {6, "r6", "R6", general, true, 6, 6, greg(6), user(6), 0x106, 6},
    {7, "r7", "R7", general, true, 7, 7, greg(7), user(7), 0x107, 7},
    {8, "r8", "R8", general, true, 8, 8, greg(8), user(8), 0x108, 8},
    {9, "r9", "R9", general, true, 9, 9, greg(9), user(9), 0x109, 9},
    {10, "r10", "R10", general, true, 10, 10, greg(10), user(10), 0x10a, 10},
    {11, "r11", "R11", general, true, 11, 11, greg(11), user(11), 0x10b, 11},
    {12, "r12", "R12", general, true, 12, 12, greg(12), user(12), 0x10c, 12},
    {13, "r13", "R13", general, true, 13, 13, greg(13), user(13), 0x10d, 13},
    {14, "r14", "R14", general, false, 14, 14, greg(14), user(14), 0x10e, 14},
    {15, "r15", "R15", general, false, 15, 15, greg(15), user(15), 0x10f, 15},
    {16, "f0", "F0", vector, false, -1, 16, -1, fpreg(0), 0x200, 16},
    {17, "f2", "F2", vector, false, -1, 18, -1, fpreg(2), 0x202, 18},
    {18, "f4", "F4", vector, false, -1, 20, -1, fpreg(4), 0x204, 20},
    {19, "f6", "F6", vector, false, -1, 22, -1, fpreg(6), 0x206, 22},
    {20, "f1", "F1", vector, false, -1, 17, -1, fpreg(1), 0x201, 17},
    {21, "f3", "F3", vector, false, -1, 19, -1, fpreg(3), 0x203, 19},
    {22, "f5", "F5", vector, false, -1, 21, -1, fpreg(5), 0x205, 21},
    {23, "f7", "F7", vector, false, -1, 23, -1, fpreg(7), 0x207, 23},
    {24, "f8", "F8", vector, true, 17, 24, -1, fpreg(8), 0x208, 24},
    {25, "f10", "F10", vector, true, 19, 26, -1, fpreg(10), 0x20a, 26},
    {26, "f12", "F12", vector, true, 21, 28, -1, fpreg(12), 0x20c, 28},
    {27, "f14", "F14", vector, true, 23, 30, -1, fpreg(14), 0x20e, 30},
    {28, "f9", "F9", vector, true, 18, 25, -1, fpreg(9), 0x209, 25},
    {29, "f11", "F11", vector, true, 20, 27, -1, fpreg(11), 0x20b, 27},
    {30, "f13", "F13", vector, true, 22, 29, -1, fpreg(13), 0x20d, 29},
    {31, "f15", "F15", vector, true, 24, 31, -1, fpreg(15), 0x20f, 31},
    {65, "pswa", "PSWA", general, false, 16, 32, greg(-1), user(-1), 0x141, 33},
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
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_390_JMP_SLOT,
    .glob_dat = R_390_GLOB_DAT,
    .word_size = 8,
    .unit = 2,
    .big_endian = true,
    .bi_endian = false,
    .stack_alignment = 8,
    .sp_granularity = 8,
    .red_zone = 0,
    .caller_sp_bias = -160,  // the CFA is above the register save area, which is the caller's
    .sp = 15,
    .fp = 11,
    .ra = 14,
    .pc = 65,
    .sign_state = k_no_reg,
    .entry_cfa = 160,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = ~Addr{0},
    .chain = {},               // the back chain is SP's
    .sigframe_ucontext = k_ucontext,
    .in_context = {},          // the psw has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = {},
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
