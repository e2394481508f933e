// x86-64 with the System V psABI (AMD64 ABI 1.0), Linux: registers, entry row, frame chain, stubs. Data only.
#include <elf.h>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/data_relocations_internal.h"
#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/arch/tables/context_columns_p.h"
#include "jitunwind/unwind_core/arch/tables/x86_calls_p.h"

#if defined(__x86_64__) && defined(__LP64__)
#define JITUNWIND_IS_HOST true
#else
#define JITUNWIND_IS_HOST false
#endif

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
    // dwarf name  libunwind name  class  preserved column unw ucontext  prstatus  uwx  perf
    {0, "rax", "RAX", general, false, 0, 0, greg(13), user(10), 0x100, 0},
    {1, "rdx", "RDX", general, false, 1, 1, greg(12), user(12), 0x101, 3},
    {2, "rcx", "RCX", general, false, 2, 2, greg(14), user(11), 0x102, 2},
    {3, "rbx", "RBX", general, true, 3, 3, greg(11), user(5), 0x103, 1},
    {4, "rsi", "RSI", general, false, 4, 4, greg(9), user(13), 0x104, 4},
    {5, "rdi", "RDI", general, false, 5, 5, greg(8), user(14), 0x105, 5},
    {6, "rbp", "RBP", general, true, 6, 6, greg(10), user(4), 0x106, 6},
    {7, "rsp", "RSP", general, false, 7, 7, greg(15), user(19), 0x107, 7},
    {8, "r8", "R8", general, false, 8, 8, greg(0), user(9), 0x108, 16},
    {9, "r9", "R9", general, false, 9, 9, greg(1), user(8), 0x109, 17},
    {10, "r10", "R10", general, false, 10, 10, greg(2), user(7), 0x10a, 18},
    {11, "r11", "R11", general, false, 11, 11, greg(3), user(6), 0x10b, 19},
    {12, "r12", "R12", general, true, 12, 12, greg(4), user(3), 0x10c, 20},
    {13, "r13", "R13", general, true, 13, 13, greg(5), user(2), 0x10d, 21},
    {14, "r14", "R14", general, true, 14, 14, greg(6), user(1), 0x10e, 22},
    {15, "r15", "R15", general, true, 15, 15, greg(7), user(0), 0x10f, 23},
    {16, "rip", "RIP", general, false, 16, 16, greg(16), user(16), 0x110, 8},
    // These names serve rows of Win64-convention functions (gcc ms_abi saves xmm6-xmm15); the psABI preserves none.
    {17, "xmm0", "XMM0", vector, false, -1, -1, -1, -1, -1},
    {18, "xmm1", "XMM1", vector, false, -1, -1, -1, -1, -1},
    {19, "xmm2", "XMM2", vector, false, -1, -1, -1, -1, -1},
    {20, "xmm3", "XMM3", vector, false, -1, -1, -1, -1, -1},
    {21, "xmm4", "XMM4", vector, false, -1, -1, -1, -1, -1},
    {22, "xmm5", "XMM5", vector, false, -1, -1, -1, -1, -1},
    {23, "xmm6", "XMM6", vector, false, -1, -1, -1, -1, -1},
    {24, "xmm7", "XMM7", vector, false, -1, -1, -1, -1, -1},
    {25, "xmm8", "XMM8", vector, false, -1, -1, -1, -1, -1},
    {26, "xmm9", "XMM9", vector, false, -1, -1, -1, -1, -1},
    {27, "xmm10", "XMM10", vector, false, -1, -1, -1, -1, -1},
    {28, "xmm11", "XMM11", vector, false, -1, -1, -1, -1, -1},
    {29, "xmm12", "XMM12", vector, false, -1, -1, -1, -1, -1},
    {30, "xmm13", "XMM13", vector, false, -1, -1, -1, -1, -1},
    {31, "xmm14", "XMM14", vector, false, -1, -1, -1, -1, -1},
    {32, "xmm15", "XMM15", vector, false, -1, -1, -1, -1, -1},
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
    .is_host = JITUNWIND_IS_HOST,
    .jump_slot = R_X86_64_JUMP_SLOT,
    .glob_dat = R_X86_64_GLOB_DAT,
    .word_size = 8,
    .unit = 1,
    .big_endian = false,
    .bi_endian = false,
    .stack_alignment = 16,
    .sp_granularity = 8,
    .red_zone = 128,
    .caller_sp_bias = 0,
    .sp = 7,
    .fp = 6,
    .ra = 16,
    .pc = 16,
    .sign_state = k_no_reg,
    .entry_cfa = 8,
    .ra_in_memory = true,
    .entry_ra = -8,
    .address_mask = ~Addr{0},
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
