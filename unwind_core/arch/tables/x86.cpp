// x86 with 32 bits and the System V psABI for i386 (version 1.1), Linux: registers, entry row, frame chain, calls.
// Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/arch/tables/x86_calls_p.h"

namespace jitunwind::arch {
namespace {

using enum RegClass;

// ucontext: offsetof(ucontext_t, uc_mcontext.gregs) is 20; gregs order gs, fs, es, ds, edi, esi, ebp, esp, ebx, edx,
// ecx, eax, trapno, err, eip (sys/ucontext.h). prstatus: struct user_regs_struct (sys/user.h). perf: enum
// perf_event_x86_regs (asm/perf_regs.h). DWARF numbers: psABI, table 2.14; libunwind's are others, with both exception
// registers first. Unwind Express has no x86 ids: GR(n) = 0x100 + DWARF number.
constexpr std::int16_t greg(int index) { return static_cast<std::int16_t>(20 + 4 * index); }
constexpr std::int16_t user(int index) { return static_cast<std::int16_t>(4 * index); }

constexpr RegisterInfo k_registers[] = {
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/x86_registers.def"
#undef JITUNWIND_REGISTER
};

// __kernel_rt_sigreturn and __restore_rt: mov $173,%eax; int $0x80. __kernel_sigreturn and __restore serve handlers
// without SA_SIGINFO: pop %eax; mov $119,%eax; int $0x80. The struct sigcontext follows the popped number of the signal
// (struct sigframe_ia32, arch/x86/include/asm/sigframe.h). A handler returns to the first byte. The mask is in oldmask,
// and after the 88 bytes of that structure and 624 of an unused struct _fpstate_32.
constexpr std::uint8_t k_restore_rt[] = {0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80};
constexpr std::uint8_t k_restore[] = {0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80};
constexpr std::uint8_t k_exact[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::int16_t k_ucontext = 140;  // after the handler's three arguments and siginfo
constexpr SigreturnFrame k_sigreturn = {.mask = 20 + 80, .mask_upper = 20 + 88 + 624};
constexpr CodePattern k_trampolines[] = {
    {k_restore_rt, std::span(k_exact).first(7), 0, 0},
    {k_restore_rt, std::span(k_exact).first(7), 5, 0},
    {k_restore, k_exact, 0, 4 - 20 - k_ucontext},
    {k_restore, k_exact, 1, -20 - k_ucontext},
    {k_restore, k_exact, 6, -20 - k_ucontext},
};

// Procedure linkage table, psABI for i386, figures 5.4 and 5.5: jmp *name, or jmp *name@GOT(%ebx) where the code is
// position-independent; push $offset; jmp plt0.
constexpr std::uint8_t k_plt[] = {0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_pic[] = {0xff, 0xa3, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0};
// plt0: push GOT+4; jmp *GOT+8, or push 4(%ebx); jmp *8(%ebx). It is entered with the offset pushed on top of the
// return address.
constexpr std::uint8_t k_plt0[] = {0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt0_pic[] = {0xff, 0xb3, 0x04, 0, 0, 0, 0xff, 0xa3, 0x08, 0, 0, 0};
constexpr std::uint8_t k_plt0_pic_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::uint8_t k_plt0_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
// .plt.got: jmp *name or jmp *name@GOT(%ebx); xchg %ax,%ax. .plt.sec of -z ibtplt: endbr32 before it.
constexpr std::uint8_t k_plt_got[] = {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90};
constexpr std::uint8_t k_plt_got_pic[] = {0xff, 0xa3, 0, 0, 0, 0, 0x66, 0x90};
constexpr std::uint8_t k_plt_got_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::uint8_t k_plt_sec[] = {0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0x25, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_sec_pic[] = {0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_sec_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
// .plt of -z ibtplt: endbr32; push $offset; jmp plt0.
constexpr std::uint8_t k_plt_ibt[] = {0xf3, 0x0f, 0x1e, 0xfb, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0};
constexpr std::uint8_t k_plt_ibt_mask[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 0};
constexpr CodePattern k_plt_stubs[] = {
    {k_plt, k_plt_mask, 0, 4},
    {k_plt, k_plt_mask, 6, 4},
    {k_plt, k_plt_mask, 11, 8},
    {k_plt_pic, k_plt_mask, 0, 4},
    {k_plt_pic, k_plt_mask, 6, 4},
    {k_plt_pic, k_plt_mask, 11, 8},
    {k_plt_sec, k_plt_sec_mask, 0, 4},
    {k_plt_sec, k_plt_sec_mask, 4, 4},
    {k_plt_sec_pic, k_plt_sec_mask, 0, 4},
    {k_plt_sec_pic, k_plt_sec_mask, 4, 4},
    {k_plt_got, k_plt_got_mask, 0, 4},
    {k_plt_got_pic, k_plt_got_mask, 0, 4},
    {k_plt_ibt, k_plt_ibt_mask, 0, 4},
    {k_plt_ibt, k_plt_ibt_mask, 4, 4},
    {k_plt_ibt, k_plt_ibt_mask, 9, 8},
    {k_plt0, k_plt0_mask, 0, 8},
    {k_plt0, k_plt0_mask, 6, 12},
    {k_plt0_pic, k_plt0_pic_mask, 0, 8},
    {k_plt0_pic, k_plt0_pic_mask, 6, 12},
};

constexpr RegNum k_exception_registers[] = {0, 2};  // eax, edx

constexpr DataRelocations k_relocations = {DataRelocations::k_none, R_386_32, DataRelocations::k_none, R_386_PC32};

}  // namespace

constinit const Arch x86 = {
    .name = "x86",
    .elf_machine = EM_386,
    .jump_slot = R_386_JMP_SLOT,
    .glob_dat = R_386_GLOB_DAT,
    .word_size = 4,
    .unit = 1,
    .stack_alignment = 16,
    .sp_granularity = 4,
    .sp = 4,
    .fp = 5,
    .ra = 8,
    .pc = 8,
    .entry_cfa = 4,
    .ra_in_memory = true,
    .entry_ra = -4,
    .address_mask = 0xffff'ffff,
    .chain = {.saved_fp = 0, .return_address = 4, .cfa = 8},
    .sigframe_ucontext = k_ucontext,
    .sigreturn = k_sigreturn,
    .in_context = columns_in_context(k_registers),
    .registers = k_registers,
    .trampolines = k_trampolines,
    .plt_stubs = k_plt_stubs,
    .calls = k_x86_calls,
    .exception_registers = k_exception_registers,
    .read_instruction = &read_x86_instruction,
    .relocations = &k_relocations,
};

}  // namespace jitunwind::arch
