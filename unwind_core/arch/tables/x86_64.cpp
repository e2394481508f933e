// x86-64 with the System V psABI (AMD64 ABI 1.0), Linux: registers, entry row, frame chain, stubs. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/arch/tables/x86_calls_p.h"

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext.gregs) is 40; gregs order r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp,
// rip (sys/ucontext.h). prstatus: struct user_regs_struct (sys/user.h). perf: enum perf_event_x86_regs
// (asm/perf_regs.h). DWARF numbers: AMD64 ABI, figure 3.36. Unwind Express has no x86-64 ids: GR(n) = 0x100 + DWARF
// number.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(40 + 8 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(8 * index); }

constexpr RegisterInfo k_registers[] = {
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/x86_64_registers.def"
#undef JITUNWIND_REGISTER
};

// __restore_rt of glibc and musl: mov $15,%rax (or %eax); syscall. The kernel returns to its first byte.
constexpr std::uint8_t k_restore_rt[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
constexpr std::uint8_t k_restore_rt_short[] = {0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr CodePattern k_trampolines[] = {
    {k_restore_rt, k_exact, 0, 0},
    {k_restore_rt, k_exact, 7, 0},
    {k_restore_rt_short, std::span(k_exact).first(7), 0, 0},
    {k_restore_rt_short, std::span(k_exact).first(7), 5, 0},
};

// Procedure linkage table, AMD64 ABI figure 5.2: jmp *name@GOTPCREL(%rip); push $index; jmp plt0.
constexpr std::uint8_t k_plt[] = {0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0};
// .plt.sec of -z ibtplt: endbr64; jmp *name(%rip), with or without bnd; and .plt.got: jmp *name(%rip); xchg %ax,%ax.
constexpr std::uint8_t k_plt_sec[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_sec_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_sec_bnd[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_sec_bnd_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_got[] = {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90};
constexpr std::uint8_t k_plt_got_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff};
// .plt of -z ibtplt: endbr64; push $index; [bnd] jmp plt0.
constexpr std::uint8_t k_plt_ibt[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_ibt_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
// plt0: push GOT+8(%rip); [bnd] jmp *GOT+16(%rip); entered with the index pushed on top of the return address.
constexpr std::uint8_t k_plt0[] = {0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt0_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
constexpr std::uint8_t k_plt0_bnd[] = {0xff, 0x35, 0, 0, 0, 0, 0xf2, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt0_bnd_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0};
constexpr CodePattern k_plt_stubs[] = {
    {k_plt, k_plt_mask, 0, 8},
    {k_plt, k_plt_mask, 6, 8},
    {k_plt, k_plt_mask, 11, 16},
    {k_plt_sec, k_plt_sec_mask, 0, 8},
    {k_plt_sec, k_plt_sec_mask, 4, 8},
    {k_plt_sec_bnd, k_plt_sec_bnd_mask, 0, 8},
    {k_plt_sec_bnd, k_plt_sec_bnd_mask, 4, 8},
    {k_plt_got, k_plt_got_mask, 0, 8},
    {k_plt_ibt, k_plt_ibt_mask, 0, 8},
    {k_plt_ibt, k_plt_ibt_mask, 4, 8},
    {k_plt_ibt, k_plt_ibt_mask, 9, 16},
    {k_plt0, k_plt0_mask, 0, 16},
    {k_plt0, k_plt0_mask, 6, 24},
    {k_plt0_bnd, k_plt0_bnd_mask, 0, 16},
    {k_plt0_bnd, k_plt0_bnd_mask, 6, 24},
};

constexpr RegNum k_exception_registers[] = {0, 1};  // rax, rdx: AMD64 ABI 6.2.5 / Itanium C++ ABI, level I

constexpr DataRelocations k_relocations = {R_X86_64_64, R_X86_64_32, R_X86_64_PC64, R_X86_64_PC32};

}  // namespace

constinit const Arch x86_64 = {
    .name = "x86-64",
    .elf_machine = EM_X86_64,
    .jump_slot = R_X86_64_JUMP_SLOT,
    .glob_dat = R_X86_64_GLOB_DAT,
    .word_size = 8,
    .unit = 1,
    .stack_alignment = 16,
    .sp_granularity = 8,
    .red_zone = 128,
    .sp = 7,
    .fp = 6,
    .ra = 16,
    .pc = 16,
    .entry_cfa = 8,
    .ra_in_memory = true,
    .entry_ra = -8,
    .chain = {.saved_fp = 0, .return_address = 8, .cfa = 16},
    .sigframe_ucontext = 0,
    .in_context = columns_in_context(k_registers),
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = k_plt_stubs,
    .calls = k_x86_calls,
    .exception_registers = k_exception_registers,
    .read_instruction = &read_x86_64_instruction,
    .relocations = &k_relocations,
    .emulated_page = 0xffffffffff600000,  // [vsyscall], linux/arch/x86/include/uapi/asm/vsyscall.h
};

}  // namespace jitunwind::arch
