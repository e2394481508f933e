// RISC-V with 64 bits and the LP64D psABI (1.0), Linux: registers, entry row, frame chain, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

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
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/riscv_registers.def"
#undef JITUNWIND_REGISTER
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
    .jump_slot = R_RISCV_JUMP_SLOT,
    .glob_dat = R_RISCV_64,
    .word_size = 8,
    .unit = 2,  // also without compressed instructions, so that regions can be shared
    .stack_alignment = 16,
    .sp_granularity = 16,
    .sp = 2,
    .fp = 8,
    .ra = 1,
    .pc = 64,
    .chain = {.saved_fp = -16, .return_address = -8, .cfa = 0},
    .sigframe_ucontext = 128,  // after struct siginfo
    .in_context = {},          // pc has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
