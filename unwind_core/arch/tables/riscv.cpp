// RISC-V with 64 bits and the LP64D psABI (1.0), Linux: registers, entry row, frame chain, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

#if defined(__riscv) && __riscv_xlen == 64
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext.__gregs) is 176; pc is in the place of x0. prstatus: struct
// user_regs_struct (asm/ptrace.h), the same order. Vector: NT_PRFPREG's f0-f31. perf: enum perf_event_riscv_regs
// (asm/perf_regs.h). DWARF numbers: psABI, "DWARF register numbers"; 64 is its alternate return column, which signal
// frames use for pc, and libunwind's number of pc. Unwind Express has no RISC-V ids: GR(n) = 0x100 + n, FR(n) = 0x200 +
// n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(176 + 8 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(8 * index); }

constexpr RegisterInfo k_registers[] = {
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    // x0 is 0, and has no place.
    {0, "x0", "x0", general, false, -1, 0, -1, -1, 0x100},
    {1, "x1", "x1", general, false, 0, 1, greg(1), user(1), 0x101, 1},
    {2, "sp", "x2", general, false, 1, 2, greg(2), user(2), 0x102, 2},
    {3, "x3", "x3", general, false, 2, 3, greg(3), user(3), 0x103, 3},
    {4, "x4", "x4", general, false, 3, 4, greg(4), user(4), 0x104, 4},
    {5, "x5", "x5", general, false, 4, 5, greg(5), user(5), 0x105, 5},
    {6, "x6", "x6", general, false, 5, 6, greg(6), user(6), 0x106, 6},
    {7, "x7", "x7", general, false, 6, 7, greg(7), user(7), 0x107, 7},
    {8, "x8", "x8", general, true, 7, 8, greg(8), user(8), 0x108, 8},
    {9, "x9", "x9", general, true, 8, 9, greg(9), user(9), 0x109, 9},
    {10, "x10", "x10", general, false, 9, 10, greg(10), user(10), 0x10a, 10},
    {11, "x11", "x11", general, false, 10, 11, greg(11), user(11), 0x10b, 11},
    {12, "x12", "x12", general, false, 11, 12, greg(12), user(12), 0x10c, 12},
    {13, "x13", "x13", general, false, 12, 13, greg(13), user(13), 0x10d, 13},
    {14, "x14", "x14", general, false, 13, 14, greg(14), user(14), 0x10e, 14},
    {15, "x15", "x15", general, false, 14, 15, greg(15), user(15), 0x10f, 15},
    {16, "x16", "x16", general, false, 15, 16, greg(16), user(16), 0x110, 16},
    {17, "x17", "x17", general, false, 16, 17, greg(17), user(17), 0x111, 17},
    {18, "x18", "x18", general, true, 17, 18, greg(18), user(18), 0x112, 18},
    {19, "x19", "x19", general, true, 18, 19, greg(19), user(19), 0x113, 19},
    {20, "x20", "x20", general, true, 19, 20, greg(20), user(20), 0x114, 20},
    {21, "x21", "x21", general, true, 20, 21, greg(21), user(21), 0x115, 21},
    {22, "x22", "x22", general, true, 21, 22, greg(22), user(22), 0x116, 22},
    {23, "x23", "x23", general, true, 22, 23, greg(23), user(23), 0x117, 23},
    {24, "x24", "x24", general, true, 23, 24, greg(24), user(24), 0x118, 24},
    {25, "x25", "x25", general, true, 24, 25, greg(25), user(25), 0x119, 25},
    {26, "x26", "x26", general, true, 25, 26, greg(26), user(26), 0x11a, 26},
    {27, "x27", "x27", general, true, 26, 27, greg(27), user(27), 0x11b, 27},
    {28, "x28", "x28", general, false, 27, 28, greg(28), user(28), 0x11c, 28},
    {29, "x29", "x29", general, false, 28, 29, greg(29), user(29), 0x11d, 29},
    {30, "x30", "x30", general, false, 29, 30, greg(30), user(30), 0x11e, 30},
    {31, "x31", "x31", general, false, 30, 31, greg(31), user(31), 0x11f, 31},
    {32, "f0", "f0", vector, false, -1, 32, -1, user(0), 0x200},
    {33, "f1", "f1", vector, false, -1, 33, -1, user(1), 0x201},
    {34, "f2", "f2", vector, false, -1, 34, -1, user(2), 0x202},
    {35, "f3", "f3", vector, false, -1, 35, -1, user(3), 0x203},
    {36, "f4", "f4", vector, false, -1, 36, -1, user(4), 0x204},
    {37, "f5", "f5", vector, false, -1, 37, -1, user(5), 0x205},
    {38, "f6", "f6", vector, false, -1, 38, -1, user(6), 0x206},
    {39, "f7", "f7", vector, false, -1, 39, -1, user(7), 0x207},
    {40, "f8", "f8", vector, true, 32, 40, -1, user(8), 0x208},
    {41, "f9", "f9", vector, true, 33, 41, -1, user(9), 0x209},
    {42, "f10", "f10", vector, false, -1, 42, -1, user(10), 0x20a},
    {43, "f11", "f11", vector, false, -1, 43, -1, user(11), 0x20b},
    {44, "f12", "f12", vector, false, -1, 44, -1, user(12), 0x20c},
    {45, "f13", "f13", vector, false, -1, 45, -1, user(13), 0x20d},
    {46, "f14", "f14", vector, false, -1, 46, -1, user(14), 0x20e},
    {47, "f15", "f15", vector, false, -1, 47, -1, user(15), 0x20f},
    {48, "f16", "f16", vector, false, -1, 48, -1, user(16), 0x210},
    {49, "f17", "f17", vector, false, -1, 49, -1, user(17), 0x211},
    {50, "f18", "f18", vector, true, 34, 50, -1, user(18), 0x212},
    {51, "f19", "f19", vector, true, 35, 51, -1, user(19), 0x213},
    {52, "f20", "f20", vector, true, 36, 52, -1, user(20), 0x214},
    {53, "f21", "f21", vector, true, 37, 53, -1, user(21), 0x215},
    {54, "f22", "f22", vector, true, 38, 54, -1, user(22), 0x216},
    {55, "f23", "f23", vector, true, 39, 55, -1, user(23), 0x217},
    {56, "f24", "f24", vector, true, 40, 56, -1, user(24), 0x218},
    {57, "f25", "f25", vector, true, 41, 57, -1, user(25), 0x219},
    {58, "f26", "f26", vector, true, 42, 58, -1, user(26), 0x21a},
    {59, "f27", "f27", vector, true, 43, 59, -1, user(27), 0x21b},
    {60, "f28", "f28", vector, false, -1, 60, -1, user(28), 0x21c},
    {61, "f29", "f29", vector, false, -1, 61, -1, user(29), 0x21d},
    {62, "f30", "f30", vector, false, -1, 62, -1, user(30), 0x21e},
    {63, "f31", "f31", vector, false, -1, 63, -1, user(31), 0x21f},
    {64, "pc", "pc", general, false, 31, 64, greg(0), user(0), 0x140, 0},
};

// __vdso_rt_sigreturn: li a7,139; ecall.
constexpr std::uint8_t k_sigreturn[] = {0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr CodePattern k_trampolines[] = {
    {k_sigreturn, k_exact, 0, 0},
    {k_sigreturn, k_exact, 4, 0},
};

// jal ra; jalr ra; c.jalr, which is c.ebreak with x0.
constexpr std::uint8_t k_jal[] = {0xef, 0x00, 0, 0};
constexpr std::uint8_t k_jal_mask[] = {0xff, 0x0f, 0, 0};
constexpr std::uint8_t k_jalr[] = {0xe7, 0x00, 0, 0};
constexpr std::uint8_t k_jalr_mask[] = {0xff, 0x7f, 0, 0};
constexpr std::uint8_t k_c_jalr[] = {0x02, 0x90};
constexpr std::uint8_t k_c_jalr_mask[] = {0x7f, 0xf0};
constexpr CodePattern k_calls[] = {
    {k_jal, k_jal_mask, 4, 0},
    {k_jalr, k_jalr_mask, 4, 0},
    {k_c_jalr, k_c_jalr_mask, 2, 0},
};

constexpr RegNum k_exception_registers[] = {10, 11, 12, 13};  // a0-a3

}  // namespace

constinit const Arch riscv = {
    .name = "riscv64",
    .elf_machine = EM_RISCV,
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_RISCV_JUMP_SLOT,
    .glob_dat = R_RISCV_64,
    .word_size = 8,
    .unit = 2,  // also without compressed instructions, so that regions can be shared
    .big_endian = false,
    .bi_endian = false,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .red_zone = 0,
    .caller_sp_bias = 0,
    .sp = 2,
    .fp = 8,
    .ra = 1,
    .pc = 64,
    .sign_state = k_no_reg,
    .entry_cfa = 0,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = ~Addr{0},
    .chain = {.saved_fp = -16, .return_address = -8, .cfa = 0},
    .sigframe_ucontext = 128,  // after struct siginfo
    .in_context = {},          // pc has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = {},
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
