// MIPS with 64 bits and the n64 ABI (MIPSpro N32 ABI Handbook, "Calling Convention"), in either byte order, Linux:
// registers, entry row, calls. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"

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
#define JITUNWIND_REGISTER(dwarf, name, ...) {dwarf, #name, __VA_ARGS__},
#include "jitunwind/unwind_core/arch/tables/mips_registers.def"
#undef JITUNWIND_REGISTER
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
    "HUP",  "INT", "QUIT", "ILL",   "TRAP", "ABRT", "EMT",  "FPE",  "KILL", "BUS",  "SEGV", "SYS",    "PIPE", "ALRM",
    "TERM", "USR1", "USR2", "CHLD", "PWR",  "WINCH", "URG", "POLL", "STOP", "TSTP", "CONT", "TTIN", "TTOU", "VTALRM",
    "PROF", "XCPU", "XFSZ",
};

}  // namespace

constinit const Arch mips = {
    .name = "mips64",
    .elf_machine = EM_MIPS,
    .jump_slot = R_MIPS_JUMP_SLOT,
    .glob_dat = R_MIPS_GLOB_DAT,
    .word_size = 8,
    .unit = 4,
    .bi_endian = true,
    .stack_alignment = 16,
    .sp_granularity = 16,
    .sp = 29,
    .fp = 30,
    .ra = 31,
    .pc = 66,
    .chain = {},               // the place to which the frame pointer points depends on the frame's size
    .sigframe_ucontext = 152,  // after space for arguments and trampoline, and struct siginfo
    .in_context = {},          // pc has no number among the others
    .registers = k_registers,
    .trampolines = k_trampolines,
    .calls = k_calls,
    .exception_registers = k_exception_registers,
    .siginfo = {.code = 4, .bus_error = 10},
    .signals = k_signals,
};

}  // namespace jitunwind::arch
