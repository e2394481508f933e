// MIPS with 64 bits and the n64 ABI (MIPSpro N32 ABI Handbook, "Calling Convention"), in either byte order, Linux:
// registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

#if defined(__mips64) && defined(__LP64__) && defined(__MIPSEL__)
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext) is 40; r0-r31, f0-f31, hi and three more of its kind, lo and three more,
// pc (sys/ucontext.h). prstatus: elf_gregset_t, r0-r31, lo, hi, pc (asm/reg.h). Vector: NT_PRFPREG's f0-f31. perf: enum
// perf_event_mips_regs (asm/perf_regs.h). DWARF numbers: gcc's; 66 is its return column of signal frames. libunwind has
// numbers of r0-r31 and pc alone: those of hi and lo are their places in a core file, those of f0-f31 follow that of
// its CFA. Unwind Express has no MIPS ids: GR(n) = 0x100 + DWARF number, FR(n) = 0x200 + n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(40 + 8 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(8 * index); }

constexpr RegisterInfo k_registers[] = {
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    // r0 is 0, and has no place.
    {0, "r0", "$0", general, false, -1, 0, -1, -1, 0x100},
    {1, "r1", "$1", general, false, 0, 1, greg(1), user(1), 0x101, 1},
    {2, "r2", "$2", general, false, 1, 2, greg(2), user(2), 0x102, 2},
    {3, "r3", "$3", general, false, 2, 3, greg(3), user(3), 0x103, 3},
    {4, "r4", "$4", general, false, 3, 4, greg(4), user(4), 0x104, 4},
    {5, "r5", "$5", general, false, 4, 5, greg(5), user(5), 0x105, 5},
    {6, "r6", "$6", general, false, 5, 6, greg(6), user(6), 0x106, 6},
    {7, "r7", "$7", general, false, 6, 7, greg(7), user(7), 0x107, 7},
    {8, "r8", "$8", general, false, 7, 8, greg(8), user(8), 0x108, 8},
    {9, "r9", "$9", general, false, 8, 9, greg(9), user(9), 0x109, 9},
    {10, "r10", "$10", general, false, 9, 10, greg(10), user(10), 0x10a, 10},
    {11, "r11", "$11", general, false, 10, 11, greg(11), user(11), 0x10b, 11},
    {12, "r12", "$12", general, false, 11, 12, greg(12), user(12), 0x10c, 12},
    {13, "r13", "$13", general, false, 12, 13, greg(13), user(13), 0x10d, 13},
    {14, "r14", "$14", general, false, 13, 14, greg(14), user(14), 0x10e, 14},
    {15, "r15", "$15", general, false, 14, 15, greg(15), user(15), 0x10f, 15},
    {16, "r16", "$16", general, true, 15, 16, greg(16), user(16), 0x110, 16},
    {17, "r17", "$17", general, true, 16, 17, greg(17), user(17), 0x111, 17},
    {18, "r18", "$18", general, true, 17, 18, greg(18), user(18), 0x112, 18},
    {19, "r19", "$19", general, true, 18, 19, greg(19), user(19), 0x113, 19},
    {20, "r20", "$20", general, true, 19, 20, greg(20), user(20), 0x114, 20},
    {21, "r21", "$21", general, true, 20, 21, greg(21), user(21), 0x115, 21},
    {22, "r22", "$22", general, true, 21, 22, greg(22), user(22), 0x116, 22},
    {23, "r23", "$23", general, true, 22, 23, greg(23), user(23), 0x117, 23},
    {24, "r24", "$24", general, false, 23, 24, greg(24), user(24), 0x118, 24},
    {25, "r25", "$25", general, false, 24, 25, greg(25), user(25), 0x119, 25},
    {26, "r26", "$26", general, false, 25, 26, greg(26), user(26), 0x11a, 26},
    {27, "r27", "$27", general, false, 26, 27, greg(27), user(27), 0x11b, 27},
    {28, "r28", "$28", general, true, 27, 28, greg(28), user(28), 0x11c, 28},
    {29, "sp", "$29", general, false, 28, 29, greg(29), user(29), 0x11d, 29},
    {30, "r30", "$30", general, true, 29, 30, greg(30), user(30), 0x11e, 30},
    {31, "r31", "$31", general, false, 30, 31, greg(31), user(31), 0x11f, 31},
    {32, "f0", "$f0", vector, false, -1, 36, -1, user(0), 0x200},
    {33, "f1", "$f1", vector, false, -1, 37, -1, user(1), 0x201},
    {34, "f2", "$f2", vector, false, -1, 38, -1, user(2), 0x202},
    {35, "f3", "$f3", vector, false, -1, 39, -1, user(3), 0x203},
    {36, "f4", "$f4", vector, false, -1, 40, -1, user(4), 0x204},
    {37, "f5", "$f5", vector, false, -1, 41, -1, user(5), 0x205},
    {38, "f6", "$f6", vector, false, -1, 42, -1, user(6), 0x206},
    {39, "f7", "$f7", vector, false, -1, 43, -1, user(7), 0x207},
    {40, "f8", "$f8", vector, false, -1, 44, -1, user(8), 0x208},
    {41, "f9", "$f9", vector, false, -1, 45, -1, user(9), 0x209},
    {42, "f10", "$f10", vector, false, -1, 46, -1, user(10), 0x20a},
    {43, "f11", "$f11", vector, false, -1, 47, -1, user(11), 0x20b},
    {44, "f12", "$f12", vector, false, -1, 48, -1, user(12), 0x20c},
    {45, "f13", "$f13", vector, false, -1, 49, -1, user(13), 0x20d},
    {46, "f14", "$f14", vector, false, -1, 50, -1, user(14), 0x20e},
    {47, "f15", "$f15", vector, false, -1, 51, -1, user(15), 0x20f},
    {48, "f16", "$f16", vector, false, -1, 52, -1, user(16), 0x210},
    {49, "f17", "$f17", vector, false, -1, 53, -1, user(17), 0x211},
    {50, "f18", "$f18", vector, false, -1, 54, -1, user(18), 0x212},
    {51, "f19", "$f19", vector, false, -1, 55, -1, user(19), 0x213},
    {52, "f20", "$f20", vector, false, -1, 56, -1, user(20), 0x214},
    {53, "f21", "$f21", vector, false, -1, 57, -1, user(21), 0x215},
    {54, "f22", "$f22", vector, false, -1, 58, -1, user(22), 0x216},
    {55, "f23", "$f23", vector, false, -1, 59, -1, user(23), 0x217},
    {56, "f24", "$f24", vector, true, 32, 60, -1, user(24), 0x218},
    {57, "f25", "$f25", vector, true, 33, 61, -1, user(25), 0x219},
    {58, "f26", "$f26", vector, true, 34, 62, -1, user(26), 0x21a},
    {59, "f27", "$f27", vector, true, 35, 63, -1, user(27), 0x21b},
    {60, "f28", "$f28", vector, true, 36, 64, -1, user(28), 0x21c},
    {61, "f29", "$f29", vector, true, 37, 65, -1, user(29), 0x21d},
    {62, "f30", "$f30", vector, true, 38, 66, -1, user(30), 0x21e},
    {63, "f31", "$f31", vector, true, 39, 67, -1, user(31), 0x21f},
    {64, "hi", "hi", general, false, 40, 33, greg(64), user(33), 0x140},
    {65, "lo", "lo", general, false, 41, 32, greg(68), user(32), 0x141},
    {66, "pc", "pc", general, false, 31, 34, greg(72), user(34), 0x142, 0},
};

// __vdso_rt_sigreturn: li v0,5211; syscall. The pattern exists in both byte orders, like the code.
constexpr std::uint8_t k_sigreturn_big[] = {0x24, 0x02, 0x14, 0x5b, 0x00, 0x00, 0x00, 0x0c};
constexpr std::uint8_t k_sigreturn_little[] = {0x5b, 0x14, 0x02, 0x24, 0x0c, 0x00, 0x00, 0x00};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr CodePattern k_trampolines[] = {
    {k_sigreturn_big, k_exact, 0, 0},
    {k_sigreturn_big, k_exact, 4, 0},
    {k_sigreturn_little, k_exact, 0, 0},
    {k_sigreturn_little, k_exact, 4, 0},
};

// jal; bal; jalr ra. The return address follows the instruction in the delay slot.
constexpr std::uint8_t k_jal_big[] = {0x0c, 0, 0, 0, 0, 0, 0, 0};
constexpr std::uint8_t k_jal_big_mask[] = {0xfc, 0, 0, 0, 0, 0, 0, 0};
constexpr std::uint8_t k_jal_little[] = {0, 0, 0, 0x0c, 0, 0, 0, 0};
constexpr std::uint8_t k_jal_little_mask[] = {0, 0, 0, 0xfc, 0, 0, 0, 0};
constexpr std::uint8_t k_bal_big[] = {0x04, 0x11, 0, 0, 0, 0, 0, 0};
constexpr std::uint8_t k_bal_big_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0, 0};
constexpr std::uint8_t k_bal_little[] = {0, 0, 0x11, 0x04, 0, 0, 0, 0};
constexpr std::uint8_t k_bal_little_mask[] = {0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr std::uint8_t k_jalr_big[] = {0x00, 0x00, 0xf8, 0x09, 0, 0, 0, 0};
constexpr std::uint8_t k_jalr_big_mask[] = {0xfc, 0x1f, 0xf8, 0x3f, 0, 0, 0, 0};
constexpr std::uint8_t k_jalr_little[] = {0x09, 0xf8, 0x00, 0x00, 0, 0, 0, 0};
constexpr std::uint8_t k_jalr_little_mask[] = {0x3f, 0xf8, 0x1f, 0xfc, 0, 0, 0, 0};
constexpr CodePattern k_calls[] = {
    {k_jal_big, k_jal_big_mask, 8, 0},       {k_jal_little, k_jal_little_mask, 8, 0},
    {k_bal_big, k_bal_big_mask, 8, 0},       {k_bal_little, k_bal_little_mask, 8, 0},
    {k_jalr_big, k_jalr_big_mask, 8, 0},     {k_jalr_little, k_jalr_little_mask, 8, 0},
};

constexpr RegNum k_exception_registers[] = {4, 5, 6, 7};  // a0-a3

// arch/mips/include/uapi/asm/signal.h
constexpr const char* k_signals[] = {
    "HUP",  "INT",  "QUIT", "ILL",  "TRAP", "ABRT", "EMT",   "FPE",  "KILL", "BUS",  "SEGV", "SYS",    "PIPE", "ALRM", "TERM",
    "USR1", "USR2", "CHLD", "PWR",  "WINCH", "URG", "POLL",  "STOP", "TSTP", "CONT", "TTIN", "TTOU",   "VTALRM", "PROF", "XCPU",
    "XFSZ",
};

}  // namespace

constinit const Arch mips = {
    .name = "mips64",
    .elf_machine = EM_MIPS,
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_MIPS_JUMP_SLOT,
    .glob_dat = R_MIPS_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .big_endian = false,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .red_zone = 0,
    .caller_sp_bias = 0,
    .sp = 29,
    .fp = 30,
    .ra = 31,
    .pc = 66,
    .sign_state = k_no_reg,
    .entry_cfa = 0,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = ~Addr{0},
    .chain = {},               // the place to which the frame pointer points depends on the frame's size
    .sigframe_ucontext = 152,  // after space for arguments and trampoline, and struct siginfo
    .in_context = {},          // pc has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = {},
    .calls = k_calls,
    .exception_registers = k_exception_registers,
    .siginfo = {.code = 4, .bus_error = 10},
    .signals = k_signals,
};

}  // namespace jitunwind::arch
