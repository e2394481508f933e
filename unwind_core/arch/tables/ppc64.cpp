// PowerPC with 64 bits, ELFv2 and, in its registers, ELFv1, in either byte order, Linux: registers, entry row, calls.
// Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

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
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/ppc64_registers.def"
#undef JITUNWIND_REGISTER
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
    .jump_slot = R_PPC64_JMP_SLOT,
    .glob_dat = R_PPC64_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .big_endian = true,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .red_zone = 288,
    .sp = 1,
    .fp = 31,
    .ra = 65,
    .pc = 67,
    .chain = {},                // the back chain is SP's
    .sigframe_ucontext = k_ucontext,
    .in_context = {},           // lr and nip have no numbers among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
};

}  // namespace jitunwind::arch
