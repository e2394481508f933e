// PowerPC with 64 bits, ELFv2 and, in its registers, ELFv1, in either byte order, Linux: registers, entry row, calls.
// Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

#if defined(__powerpc64__)
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext.gp_regs) is 232; struct pt_regs (asm/ptrace.h) is r0-r31, nip, msr,
// orig_gpr3, ctr, link, xer, ccr. prstatus: the same. Vector: NT_PRFPREG's f0-f31. perf: enum perf_event_powerpc_regs
// (asm/perf_regs.h). DWARF numbers: those that compilers use in .eh_frame, which differ for lr, ctr and CR from the
// ELFv2 ABI's of other sections; 67 is that of nip in signal frames (arch/powerpc/kernel/vdso/sigtramp64.S). Each
// preserved field of CR stands for the whole of it. The last columns, those of f20-f31, are beyond those that a frame
// has values of. libunwind's numbers are the same except for nip. Unwind Express has no PowerPC ids: GR(n) = 0x100 +
// DWARF number, FR(n) = 0x200 + n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(232 + 8 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(8 * index); }

constexpr RegisterInfo k_registers[] = {
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    {0, "r0", "GPR0", general, false, 0, 0, greg(0), user(0), 0x100, 0},
    {1, "sp", "GPR1", general, false, 1, 1, greg(1), user(1), 0x101, 1},
    {2, "r2", "GPR2", general, false, 2, 2, greg(2), user(2), 0x102, 2},
    {3, "r3", "GPR3", general, false, 3, 3, greg(3), user(3), 0x103, 3},
    {4, "r4", "GPR4", general, false, 4, 4, greg(4), user(4), 0x104, 4},
    {5, "r5", "GPR5", general, false, 5, 5, greg(5), user(5), 0x105, 5},
    {6, "r6", "GPR6", general, false, 6, 6, greg(6), user(6), 0x106, 6},
    {7, "r7", "GPR7", general, false, 7, 7, greg(7), user(7), 0x107, 7},
    {8, "r8", "GPR8", general, false, 8, 8, greg(8), user(8), 0x108, 8},
    {9, "r9", "GPR9", general, false, 9, 9, greg(9), user(9), 0x109, 9},
    {10, "r10", "GPR10", general, false, 10, 10, greg(10), user(10), 0x10a, 10},
    {11, "r11", "GPR11", general, false, 11, 11, greg(11), user(11), 0x10b, 11},
    {12, "r12", "GPR12", general, false, 12, 12, greg(12), user(12), 0x10c, 12},
    {13, "r13", "GPR13", general, false, 13, 13, greg(13), user(13), 0x10d, 13},
    {14, "r14", "GPR14", general, true, 14, 14, greg(14), user(14), 0x10e, 14},
    {15, "r15", "GPR15", general, true, 15, 15, greg(15), user(15), 0x10f, 15},
    {16, "r16", "GPR16", general, true, 16, 16, greg(16), user(16), 0x110, 16},
    {17, "r17", "GPR17", general, true, 17, 17, greg(17), user(17), 0x111, 17},
    {18, "r18", "GPR18", general, true, 18, 18, greg(18), user(18), 0x112, 18},
    {19, "r19", "GPR19", general, true, 19, 19, greg(19), user(19), 0x113, 19},
    {20, "r20", "GPR20", general, true, 20, 20, greg(20), user(20), 0x114, 20},
    {21, "r21", "GPR21", general, true, 21, 21, greg(21), user(21), 0x115, 21},
    {22, "r22", "GPR22", general, true, 22, 22, greg(22), user(22), 0x116, 22},
    {23, "r23", "GPR23", general, true, 23, 23, greg(23), user(23), 0x117, 23},
    {24, "r24", "GPR24", general, true, 24, 24, greg(24), user(24), 0x118, 24},
    {25, "r25", "GPR25", general, true, 25, 25, greg(25), user(25), 0x119, 25},
    {26, "r26", "GPR26", general, true, 26, 26, greg(26), user(26), 0x11a, 26},
    {27, "r27", "GPR27", general, true, 27, 27, greg(27), user(27), 0x11b, 27},
    {28, "r28", "GPR28", general, true, 28, 28, greg(28), user(28), 0x11c, 28},
    {29, "r29", "GPR29", general, true, 29, 29, greg(29), user(29), 0x11d, 29},
    {30, "r30", "GPR30", general, true, 30, 30, greg(30), user(30), 0x11e, 30},
    {31, "r31", "GPR31", general, true, 31, 31, greg(31), user(31), 0x11f, 31},
    {32, "f0", "FPR0", vector, false, -1, 32, -1, user(0), 0x200},
    {33, "f1", "FPR1", vector, false, -1, 33, -1, user(1), 0x201},
    {34, "f2", "FPR2", vector, false, -1, 34, -1, user(2), 0x202},
    {35, "f3", "FPR3", vector, false, -1, 35, -1, user(3), 0x203},
    {36, "f4", "FPR4", vector, false, -1, 36, -1, user(4), 0x204},
    {37, "f5", "FPR5", vector, false, -1, 37, -1, user(5), 0x205},
    {38, "f6", "FPR6", vector, false, -1, 38, -1, user(6), 0x206},
    {39, "f7", "FPR7", vector, false, -1, 39, -1, user(7), 0x207},
    {40, "f8", "FPR8", vector, false, -1, 40, -1, user(8), 0x208},
    {41, "f9", "FPR9", vector, false, -1, 41, -1, user(9), 0x209},
    {42, "f10", "FPR10", vector, false, -1, 42, -1, user(10), 0x20a},
    {43, "f11", "FPR11", vector, false, -1, 43, -1, user(11), 0x20b},
    {44, "f12", "FPR12", vector, false, -1, 44, -1, user(12), 0x20c},
    {45, "f13", "FPR13", vector, false, -1, 45, -1, user(13), 0x20d},
    {46, "f14", "FPR14", vector, true, 38, 46, -1, user(14), 0x20e},
    {47, "f15", "FPR15", vector, true, 39, 47, -1, user(15), 0x20f},
    {48, "f16", "FPR16", vector, true, 40, 48, -1, user(16), 0x210},
    {49, "f17", "FPR17", vector, true, 41, 49, -1, user(17), 0x211},
    {50, "f18", "FPR18", vector, true, 42, 50, -1, user(18), 0x212},
    {51, "f19", "FPR19", vector, true, 43, 51, -1, user(19), 0x213},
    {52, "f20", "FPR20", vector, true, 44, 52, -1, user(20), 0x214},
    {53, "f21", "FPR21", vector, true, 45, 53, -1, user(21), 0x215},
    {54, "f22", "FPR22", vector, true, 46, 54, -1, user(22), 0x216},
    {55, "f23", "FPR23", vector, true, 47, 55, -1, user(23), 0x217},
    {56, "f24", "FPR24", vector, true, 48, 56, -1, user(24), 0x218},
    {57, "f25", "FPR25", vector, true, 49, 57, -1, user(25), 0x219},
    {58, "f26", "FPR26", vector, true, 50, 58, -1, user(26), 0x21a},
    {59, "f27", "FPR27", vector, true, 51, 59, -1, user(27), 0x21b},
    {60, "f28", "FPR28", vector, true, 52, 60, -1, user(28), 0x21c},
    {61, "f29", "FPR29", vector, true, 53, 61, -1, user(29), 0x21d},
    {62, "f30", "FPR30", vector, true, 54, 62, -1, user(30), 0x21e},
    {63, "f31", "FPR31", vector, true, 55, 63, -1, user(31), 0x21f},
    {65, "lr", "LR", general, false, 32, 65, greg(36), user(36), 0x141, 36},
    {66, "ctr", "CTR", general, false, 33, 66, greg(35), user(35), 0x142, 35},
    {67, "nip", "NIP", general, false, 34, 114, greg(32), user(32), 0x143, 32},
    {70, "cr2", "CR2", general, true, 35, 70, greg(38), user(38), 0x146, 38},
    {71, "cr3", "CR3", general, true, 36, 71, -1, -1, 0x147},
    {72, "cr4", "CR4", general, true, 37, 72, -1, -1, 0x148},
    // Registers of 16 bytes: a frame has no value of them. v20-v31 are preserved.
    {77, "v0", "VR0", vector, false, -1, 77, -1, -1, -1},
    {78, "v1", "VR1", vector, false, -1, 78, -1, -1, -1},
    {79, "v2", "VR2", vector, false, -1, 79, -1, -1, -1},
    {80, "v3", "VR3", vector, false, -1, 80, -1, -1, -1},
    {81, "v4", "VR4", vector, false, -1, 81, -1, -1, -1},
    {82, "v5", "VR5", vector, false, -1, 82, -1, -1, -1},
    {83, "v6", "VR6", vector, false, -1, 83, -1, -1, -1},
    {84, "v7", "VR7", vector, false, -1, 84, -1, -1, -1},
    {85, "v8", "VR8", vector, false, -1, 85, -1, -1, -1},
    {86, "v9", "VR9", vector, false, -1, 86, -1, -1, -1},
    {87, "v10", "VR10", vector, false, -1, 87, -1, -1, -1},
    {88, "v11", "VR11", vector, false, -1, 88, -1, -1, -1},
    {89, "v12", "VR12", vector, false, -1, 89, -1, -1, -1},
    {90, "v13", "VR13", vector, false, -1, 90, -1, -1, -1},
    {91, "v14", "VR14", vector, false, -1, 91, -1, -1, -1},
    {92, "v15", "VR15", vector, false, -1, 92, -1, -1, -1},
    {93, "v16", "VR16", vector, false, -1, 93, -1, -1, -1},
    {94, "v17", "VR17", vector, false, -1, 94, -1, -1, -1},
    {95, "v18", "VR18", vector, false, -1, 95, -1, -1, -1},
    {96, "v19", "VR19", vector, false, -1, 96, -1, -1, -1},
    {97, "v20", "VR20", vector, false, -1, 97, -1, -1, -1},
    {98, "v21", "VR21", vector, false, -1, 98, -1, -1, -1},
    {99, "v22", "VR22", vector, false, -1, 99, -1, -1, -1},
    {100, "v23", "VR23", vector, false, -1, 100, -1, -1, -1},
    {101, "v24", "VR24", vector, false, -1, 101, -1, -1, -1},
    {102, "v25", "VR25", vector, false, -1, 102, -1, -1, -1},
    {103, "v26", "VR26", vector, false, -1, 103, -1, -1, -1},
    {104, "v27", "VR27", vector, false, -1, 104, -1, -1, -1},
    {105, "v28", "VR28", vector, false, -1, 105, -1, -1, -1},
    {106, "v29", "VR29", vector, false, -1, 106, -1, -1, -1},
    {107, "v30", "VR30", vector, false, -1, 107, -1, -1, -1},
    {108, "v31", "VR31", vector, false, -1, 108, -1, -1, -1},
};

// __kernel_sigtramp_rt64 at the return of a handler: addi r1,r1,128; li r0,172; sc. qemu-user's: li r0,172; sc, with a
// frame that is 16 bytes larger. The patterns exist in both byte orders, like the code; the longer ones precede the
// others.
constexpr std::uint8_t k_sigreturn_big[] = {0x38, 0x21, 0x00, 0x80, 0x38, 0x00, 0x00, 0xac, 0x44, 0x00, 0x00, 0x02};
constexpr std::uint8_t k_sigreturn_little[] = {0x80, 0x00, 0x21, 0x38, 0xac, 0x00, 0x00, 0x38, 0x02, 0x00, 0x00, 0x44};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::int16_t k_ucontext = 128;  // after the handler's own frame
constexpr CodePattern k_trampolines[] = {
    {k_sigreturn_big, k_exact, 0, 0},
    {k_sigreturn_big, k_exact, 4, -k_ucontext},
    {k_sigreturn_little, k_exact, 0, 0},
    {k_sigreturn_little, k_exact, 4, -k_ucontext},
    {std::span(k_sigreturn_big).last(8), std::span(k_exact).first(8), 0, 16},
    {std::span(k_sigreturn_little).last(8), std::span(k_exact).first(8), 0, 16},
};

// bl; bctrl; blrl.
constexpr std::uint8_t k_bl_big[] = {0x48, 0, 0, 0x01};
constexpr std::uint8_t k_bl_big_mask[] = {0xfc, 0, 0, 0x03};
constexpr std::uint8_t k_bl_little[] = {0x01, 0, 0, 0x48};
constexpr std::uint8_t k_bl_little_mask[] = {0x03, 0, 0, 0xfc};
constexpr std::uint8_t k_register_big[] = {0x4e, 0x80, 0x00, 0x21};
constexpr std::uint8_t k_register_big_mask[] = {0xff, 0xff, 0xfb, 0xff};
constexpr std::uint8_t k_register_little[] = {0x21, 0x00, 0x80, 0x4e};
constexpr std::uint8_t k_register_little_mask[] = {0xff, 0xfb, 0xff, 0xff};
constexpr CodePattern k_calls[] = {
    {k_bl_big, k_bl_big_mask, 4, 0},
    {k_bl_little, k_bl_little_mask, 4, 0},
    {k_register_big, k_register_big_mask, 4, 0},
    {k_register_little, k_register_little_mask, 4, 0},
};

constexpr RegNum k_exception_registers[] = {3, 4, 5, 6};  // r3-r6

}  // namespace

constinit const Arch ppc64 = {
    .name = "ppc64",
    .elf_machine = EM_PPC64,
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_PPC64_JMP_SLOT,
    .glob_dat = R_PPC64_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .big_endian = true,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .red_zone = 288,
    .caller_sp_bias = 0,
    .sp = 1,
    .fp = 31,
    .ra = 65,
    .pc = 67,
    .sign_state = k_no_reg,
    .entry_cfa = 0,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = ~Addr{0},
    .chain = {},                // the back chain is SP's
    .sigframe_ucontext = k_ucontext,
    .in_context = {},           // lr and nip have no numbers among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = {},
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
