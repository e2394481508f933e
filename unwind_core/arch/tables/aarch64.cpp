// AArch64 with the AAPCS64 (2024Q3), little-endian, Linux: registers, entry row, frame chain, stubs. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/data_relocations_internal.h"
#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/arch/context_records_p.h"
#include "jitunwind/unwind_core/arch/signing_p.h"
#include "jitunwind/unwind_core/arch/tables/context_columns_p.h"

#if defined(__aarch64__) && !defined(__AARCH64EB__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define JITUNWIND_IS_HOST true
#define JITUNWIND_SIGNING &k_signing
#define JITUNWIND_COUNT_VECTOR_WORDS &count_vector_words
extern "C" jitunwind::Addr jitunwind_sign_with_a(jitunwind::Addr address, jitunwind::Addr modifier) noexcept;
extern "C" jitunwind::Addr jitunwind_sign_with_b(jitunwind::Addr address, jitunwind::Addr modifier) noexcept;
extern "C" jitunwind::Addr jitunwind_strip_signature(jitunwind::Addr address) noexcept;
extern "C" std::uint64_t jitunwind_vector_words() noexcept;
#else
#define JITUNWIND_IS_HOST false
#define JITUNWIND_SIGNING nullptr
#define JITUNWIND_COUNT_VECTOR_WORDS nullptr
#endif

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext) is 176; struct sigcontext (asm/sigcontext.h) is fault_address, regs[31],
// sp, pc, pstate. prstatus: struct user_pt_regs (asm/ptrace.h), regs[31], sp, pc, pstate. perf: enum
// perf_event_arm_regs (asm/perf_regs.h). DWARF numbers: DWARF for the Arm 64-bit Architecture, table 1. Unwind Express
// has no AArch64 ids: GR(n) = 0x100 + n, FR(n) = 0x200 + n.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(176 + 8 + 8 * index); }
// struct fpsimd_context, the first record after those: head, fpsr, fpcr, vregs[32].
constexpr std::int16_t k_fpsimd = 464;
constexpr std::int16_t vreg(int index) { return static_cast<std::int16_t>(k_fpsimd + 16 + 16 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(8 * index); }
// struct user_fpsimd_state: vregs[32].
constexpr std::int16_t fpreg(int index) { return static_cast<std::int16_t>(16 * index); }

constexpr RegisterInfo k_registers[] = {
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    {0, "x0", "x0", general, false, 0, 0, greg(0), user(0), 0x100, 0},
    {1, "x1", "x1", general, false, 1, 1, greg(1), user(1), 0x101, 1},
    {2, "x2", "x2", general, false, 2, 2, greg(2), user(2), 0x102, 2},
    {3, "x3", "x3", general, false, 3, 3, greg(3), user(3), 0x103, 3},
    {4, "x4", "x4", general, false, 4, 4, greg(4), user(4), 0x104, 4},
    {5, "x5", "x5", general, false, 5, 5, greg(5), user(5), 0x105, 5},
    {6, "x6", "x6", general, false, 6, 6, greg(6), user(6), 0x106, 6},
    {7, "x7", "x7", general, false, 7, 7, greg(7), user(7), 0x107, 7},
    {8, "x8", "x8", general, false, 8, 8, greg(8), user(8), 0x108, 8},
    {9, "x9", "x9", general, false, 9, 9, greg(9), user(9), 0x109, 9},
    {10, "x10", "x10", general, false, 10, 10, greg(10), user(10), 0x10a, 10},
    {11, "x11", "x11", general, false, 11, 11, greg(11), user(11), 0x10b, 11},
    {12, "x12", "x12", general, false, 12, 12, greg(12), user(12), 0x10c, 12},
    {13, "x13", "x13", general, false, 13, 13, greg(13), user(13), 0x10d, 13},
    {14, "x14", "x14", general, false, 14, 14, greg(14), user(14), 0x10e, 14},
    {15, "x15", "x15", general, false, 15, 15, greg(15), user(15), 0x10f, 15},
    {16, "x16", "x16", general, false, 16, 16, greg(16), user(16), 0x110, 16},
    {17, "x17", "x17", general, false, 17, 17, greg(17), user(17), 0x111, 17},
    {18, "x18", "x18", general, false, 18, 18, greg(18), user(18), 0x112, 18},
    {19, "x19", "x19", general, true, 19, 19, greg(19), user(19), 0x113, 19},
    {20, "x20", "x20", general, true, 20, 20, greg(20), user(20), 0x114, 20},
    {21, "x21", "x21", general, true, 21, 21, greg(21), user(21), 0x115, 21},
    {22, "x22", "x22", general, true, 22, 22, greg(22), user(22), 0x116, 22},
    {23, "x23", "x23", general, true, 23, 23, greg(23), user(23), 0x117, 23},
    {24, "x24", "x24", general, true, 24, 24, greg(24), user(24), 0x118, 24},
    {25, "x25", "x25", general, true, 25, 25, greg(25), user(25), 0x119, 25},
    {26, "x26", "x26", general, true, 26, 26, greg(26), user(26), 0x11a, 26},
    {27, "x27", "x27", general, true, 27, 27, greg(27), user(27), 0x11b, 27},
    {28, "x28", "x28", general, true, 28, 28, greg(28), user(28), 0x11c, 28},
    {29, "x29", "x29", general, true, 29, 29, greg(29), user(29), 0x11d, 29},
    {30, "x30", "x30", general, false, 30, 30, greg(30), user(30), 0x11e, 30},
    {31, "sp", "sp", general, false, 31, 31, greg(31), user(31), 0x11f, 31},
    {32, "pc", "pc", general, false, 32, 32, greg(32), user(32), 0x120, 32},
    {34, "ra_sign_state", "ra_sign_state", pseudo, false, 33, 34, -1, -1, -1},
    {46, "vg", "vg", pseudo, true, 42, -1, -1, -1, -1, 46},
    {64, "v0", "v0", vector, false, -1, 64, -1, fpreg(0), 0x200},
    {65, "v1", "v1", vector, false, -1, 65, -1, fpreg(1), 0x201},
    {66, "v2", "v2", vector, false, -1, 66, -1, fpreg(2), 0x202},
    {67, "v3", "v3", vector, false, -1, 67, -1, fpreg(3), 0x203},
    {68, "v4", "v4", vector, false, -1, 68, -1, fpreg(4), 0x204},
    {69, "v5", "v5", vector, false, -1, 69, -1, fpreg(5), 0x205},
    {70, "v6", "v6", vector, false, -1, 70, -1, fpreg(6), 0x206},
    {71, "v7", "v7", vector, false, -1, 71, -1, fpreg(7), 0x207},
    {72, "v8", "v8", vector, true, 34, 72, vreg(8), fpreg(8), 0x208},
    {73, "v9", "v9", vector, true, 35, 73, vreg(9), fpreg(9), 0x209},
    {74, "v10", "v10", vector, true, 36, 74, vreg(10), fpreg(10), 0x20a},
    {75, "v11", "v11", vector, true, 37, 75, vreg(11), fpreg(11), 0x20b},
    {76, "v12", "v12", vector, true, 38, 76, vreg(12), fpreg(12), 0x20c},
    {77, "v13", "v13", vector, true, 39, 77, vreg(13), fpreg(13), 0x20d},
    {78, "v14", "v14", vector, true, 40, 78, vreg(14), fpreg(14), 0x20e},
    {79, "v15", "v15", vector, true, 41, 79, vreg(15), fpreg(15), 0x20f},
    {80, "v16", "v16", vector, false, -1, 80, -1, fpreg(16), 0x210},
    {81, "v17", "v17", vector, false, -1, 81, -1, fpreg(17), 0x211},
    {82, "v18", "v18", vector, false, -1, 82, -1, fpreg(18), 0x212},
    {83, "v19", "v19", vector, false, -1, 83, -1, fpreg(19), 0x213},
    {84, "v20", "v20", vector, false, -1, 84, -1, fpreg(20), 0x214},
    {85, "v21", "v21", vector, false, -1, 85, -1, fpreg(21), 0x215},
    {86, "v22", "v22", vector, false, -1, 86, -1, fpreg(22), 0x216},
    {87, "v23", "v23", vector, false, -1, 87, -1, fpreg(23), 0x217},
    {88, "v24", "v24", vector, false, -1, 88, -1, fpreg(24), 0x218},
    {89, "v25", "v25", vector, false, -1, 89, -1, fpreg(25), 0x219},
    {90, "v26", "v26", vector, false, -1, 90, -1, fpreg(26), 0x21a},
    {91, "v27", "v27", vector, false, -1, 91, -1, fpreg(27), 0x21b},
    {92, "v28", "v28", vector, false, -1, 92, -1, fpreg(28), 0x21c},
    {93, "v29", "v29", vector, false, -1, 93, -1, fpreg(29), 0x21d},
    {94, "v30", "v30", vector, false, -1, 94, -1, fpreg(30), 0x21e},
    {95, "v31", "v31", vector, false, -1, 95, -1, fpreg(31), 0x21f},
};

// __kernel_rt_sigreturn: mov x8,#139; svc #0.
constexpr std::uint8_t k_sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr CodePattern k_trampolines[] = {
    {k_sigreturn, k_exact, 0, 0},
    {k_sigreturn, k_exact, 4, 0},
};

// Procedure linkage table of GNU ld and lld: adrp x16; ldr x17,[x16,#]; add x16,x16,#; br x17, perhaps after bti c or
// with autia1716 before the br. The first entry begins with stp x16,x30,[sp,#-16]!; x30 keeps the return address
// throughout.
constexpr std::uint8_t k_plt[] = {
    0x10, 0x00, 0x00, 0x90,
    0x11, 0x02, 0x40, 0xf9,
    0x10, 0x02, 0x00, 0x91,
    0x20, 0x02, 0x1f, 0xd6,
};
constexpr std::uint8_t k_plt_mask[] = {
    0x1f, 0x00, 0x00, 0x9f,
    0xff, 0x03, 0xc0, 0xff,
    0xff, 0x03, 0xc0, 0xff,
    0xff, 0xff, 0xff, 0xff,
};
constexpr std::uint8_t k_plt_bti[] = {
    0x5f, 0x24, 0x03, 0xd5,
    0x10, 0x00, 0x00, 0x90,
    0x11, 0x02, 0x40, 0xf9,
};
constexpr std::uint8_t k_plt_bti_mask[] = {
    0xff, 0xff, 0xff, 0xff,
    0x1f, 0x00, 0x00, 0x9f,
    0xff, 0x03, 0xc0, 0xff,
};
constexpr std::uint8_t k_plt_pac[] = {
    0x10, 0x02, 0x00, 0x91,
    0x9f, 0x21, 0x03, 0xd5,
    0x20, 0x02, 0x1f, 0xd6,
};
constexpr std::uint8_t k_plt_pac_mask[] = {
    0xff, 0x03, 0xc0, 0xff,
    0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff,
};
constexpr std::uint8_t k_plt0[] = {
    0xf0, 0x7b, 0xbf, 0xa9,
    0x10, 0x00, 0x00, 0x90,
    0x11, 0x02, 0x40, 0xf9,
    0x10, 0x02, 0x00, 0x91,
    0x20, 0x02, 0x1f, 0xd6,
};
constexpr std::uint8_t k_plt0_mask[] = {
    0xff, 0xff, 0xff, 0xff,
    0x1f, 0x00, 0x00, 0x9f,
    0xff, 0x03, 0xc0, 0xff,
    0xff, 0x03, 0xc0, 0xff,
    0xff, 0xff, 0xff, 0xff,
};
constexpr CodePattern k_plt_stubs[] = {
    {std::span(k_plt0).first(16), std::span(k_plt0_mask).first(16), 0, 0},
    {std::span(k_plt0).first(16), std::span(k_plt0_mask).first(16), 4, 16},
    {std::span(k_plt0).first(16), std::span(k_plt0_mask).first(16), 8, 16},
    {std::span(k_plt0).first(16), std::span(k_plt0_mask).first(16), 12, 16},
    {k_plt0, k_plt0_mask, 16, 16},
    {std::span(k_plt).first(12), std::span(k_plt_mask).first(12), 0, 0},
    {std::span(k_plt).first(12), std::span(k_plt_mask).first(12), 4, 0},
    {std::span(k_plt).first(12), std::span(k_plt_mask).first(12), 8, 0},
    {k_plt, k_plt_mask, 12, 0},
    {k_plt_bti, k_plt_bti_mask, 0, 0},
    {k_plt_pac, k_plt_pac_mask, 4, 0},
    {k_plt_pac, k_plt_pac_mask, 8, 0},
};

// bl; blr and its authenticating forms blraa, blrab, blraaz, blrabz (A64 instruction set).
constexpr std::uint8_t k_bl[] = {0x00, 0x00, 0x00, 0x94};
constexpr std::uint8_t k_bl_mask[] = {0x00, 0x00, 0x00, 0xfc};
constexpr std::uint8_t k_blr[] = {0x00, 0x00, 0x3f, 0xd6};
constexpr std::uint8_t k_blr_mask[] = {0x1f, 0xfc, 0xff, 0xff};
constexpr std::uint8_t k_blra[] = {0x00, 0x08, 0x3f, 0xd6};
constexpr std::uint8_t k_blra_mask[] = {0x00, 0xf8, 0xff, 0xfe};
constexpr CodePattern k_calls[] = {
    {k_bl, k_bl_mask, 4, 0},
    {k_blr, k_blr_mask, 4, 0},
    {k_blra, k_blra_mask, 4, 0},
};

#if JITUNWIND_IS_HOST
/// The CPU tells it: a sandbox may not let a system call pass.
std::uint64_t count_vector_words() noexcept {
  return (::getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? jitunwind_vector_words() : 0;
}
#endif

// FPSIMD_MAGIC
constexpr ContextRecords k_records{.first = k_fpsimd,
                                   .room = 4096,
                                   .kind = 0x46508001,
                                   .size = 528,
                                   .vector_words = 46,
                                   .count_vector_words = JITUNWIND_COUNT_VECTOR_WORDS};

constexpr RegNum k_exception_registers[] = {0, 1, 2, 3};  // x0-x3

constexpr DataRelocations k_relocations = {R_AARCH64_ABS64, R_AARCH64_ABS32, R_AARCH64_PREL64, R_AARCH64_PREL32};

#if JITUNWIND_IS_HOST
constexpr SigningInstructions k_signing = {
    .are_there = []() noexcept { return (::getauxval(AT_HWCAP) & HWCAP_PACA) != 0; },
    .sign = [](Addr address, Addr modifier, SigningKey key) noexcept {
      return key == SigningKey::b ? jitunwind_sign_with_b(address, modifier) : jitunwind_sign_with_a(address, modifier);
    },
    .strip = &jitunwind_strip_signature,
};
#endif

}  // namespace

constinit const Arch aarch64 = {
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_AARCH64_JUMP_SLOT,
    .glob_dat = R_AARCH64_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .big_endian = false,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .red_zone = 0,
    .caller_sp_bias = 0,
    .sp = 31,
    .fp = 29,
    .ra = 30,
    .pc = 32,
    .sign_state = 34,
    .entry_cfa = 0,
    .ra_in_memory = false,
    .entry_ra = 0,
    .address_mask = (Addr{1} << 48) - 1,
    .chain = {.saved_fp = 0, .return_address = 8, .cfa = 16},
    .sigframe_ucontext = 128,  // after struct siginfo
    .vector_slot = 16,
    .in_context = columns_in_context(k_registers),
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = k_plt_stubs,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
    .read_instruction = &read_a64_instruction,
    .records = &k_records,
    .relocations = &k_relocations,
    .signing = JITUNWIND_SIGNING,
};

}  // namespace jitunwind::arch
