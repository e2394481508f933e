// AArch64 with the AAPCS64 (2024Q3), little-endian, Linux: registers, entry row, frame chain, stubs. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"

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
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/aarch64_registers.def"
#undef JITUNWIND_REGISTER
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
    .jump_slot = R_AARCH64_JUMP_SLOT,
    .glob_dat = R_AARCH64_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .sp = 31,
    .fp = 29,
    .ra = 30,
    .pc = 32,
    .sign_state = 34,
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
