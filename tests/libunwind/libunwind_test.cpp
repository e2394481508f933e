// libunwind's C interface on this process's own stack.
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/libunwind/libunwind_constants.h"
#include "tests/support/pcs_from.h"

extern "C" const std::size_t jitunwind_test_sizes_in_c[9];  // libunwind_abi_test.c

namespace {

using jitunwind::test::pcs_from;

std::string proc_name(unw_cursor_t& cursor) {
  std::array<char, 512> buffer;
  return unw_get_proc_name(&cursor, buffer.data(), buffer.size(), nullptr) == 0 ? buffer.data() : "";
}

extern "C" {
[[gnu::noinline]] int jitunwind_test_first_frame(unw_cursor_t* cursor, unw_word_t* frame_sp) {
  static unw_context_t context;
  unw_getcontext(&context);
  *frame_sp = reinterpret_cast<unw_word_t>(__builtin_dwarf_cfa());
  return unw_init_local(cursor, &context);
}
}

// covers: LU04
TEST(Libunwind, FirstFrameIsTheOneThatCalledGetcontext) {
  unw_cursor_t cursor;
  unw_word_t callee_cfa = 0;
  ASSERT_EQ(jitunwind_test_first_frame(&cursor, &callee_cfa), 0);
  unw_word_t ip = 0, sp = 0, pc_begin = reinterpret_cast<unw_word_t>(&jitunwind_test_first_frame);
  ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
  ASSERT_EQ(unw_get_reg(&cursor, UNW_REG_SP, &sp), 0);
  EXPECT_GE(ip, pc_begin);
  EXPECT_LT(ip, pc_begin + 200);
  EXPECT_LT(sp, callee_cfa);
  EXPECT_GT(sp, callee_cfa - 4096);
  EXPECT_EQ(proc_name(cursor), "jitunwind_test_first_frame");
}

// The numbers are checked while compiling, in C and in C++: tests/libunwind/libunwind_constants.h.
// covers: ER02 ER03 ER04 ER05 RG15 RG16 DY15
TEST(Libunwind, NumbersAndSizes) {
  const std::size_t here[] = {sizeof(unw_cursor_t),    sizeof(unw_context_t),   sizeof(unw_fpreg_t),
                              alignof(unw_fpreg_t),    sizeof(unw_proc_info_t), sizeof(unw_save_loc_t),
                              sizeof(unw_accessors_t), sizeof(unw_dyn_info_t),  offsetof(unw_dyn_info_t, u)};
  for (std::size_t i = 0; i < std::size(here); ++i) EXPECT_EQ(jitunwind_test_sizes_in_c[i], here[i]) << i;
  EXPECT_EQ(sizeof(unw_accessors_t), 88u);
  EXPECT_EQ(sizeof(unw_dyn_info_t), 80u);
}

TEST(Libunwind, ACursorThatWasNeverInitialisedIsRefused) {
  unw_cursor_t zeros{};
  unw_word_t word = 0;
  unw_fpreg_t number{};
  unw_save_loc_t place;
  unw_proc_info_t info;
  char text[8];
  const auto no_state = [](void*, void*, size_t, unw_word_t, unw_word_t) { return 7; };
  EXPECT_EQ(unw_step(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_resume(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_get_reg(&zeros, UNW_REG_IP, &word), -UNW_EINVAL);
  EXPECT_EQ(unw_set_reg(&zeros, UNW_REG_IP, 1), -UNW_EINVAL);
  EXPECT_EQ(unw_get_fpreg(&zeros, 17, &number), -UNW_EINVAL);
  EXPECT_EQ(unw_set_fpreg(&zeros, 17, number), -UNW_EINVAL);
  EXPECT_EQ(unw_get_save_loc(&zeros, UNW_X86_64_RBX, &place), -UNW_EINVAL);
  EXPECT_EQ(unw_set_guesses(&zeros, UNW_GUESSES_BOLD), -UNW_EINVAL);
  EXPECT_EQ(unw_is_guess(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_is_signal_frame(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_is_interrupted_frame(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_is_plt_entry(&zeros), -UNW_EINVAL);
  EXPECT_EQ(unw_get_proc_info(&zeros, &info), -UNW_EINVAL);
  EXPECT_EQ(unw_get_proc_name(&zeros, text, sizeof text, nullptr), -UNW_EINVAL);
  EXPECT_EQ(unw_get_elf_filename(&zeros, text, sizeof text, nullptr), -UNW_EINVAL);
  EXPECT_EQ(unw_reg_states_iterate(&zeros, no_state, nullptr), -UNW_EINVAL);
  EXPECT_EQ(unw_apply_reg_state(&zeros, text), -UNW_EINVAL);
}

TEST(Libunwind, WithoutAContextThereIsNoCursor) {
  unw_cursor_t cursor{};
  EXPECT_EQ(unw_init_local(&cursor, nullptr), -UNW_EINVAL);
  EXPECT_EQ(unw_init_local2(&cursor, nullptr, 0), -UNW_EINVAL);
  EXPECT_EQ(unw_init_local2(&cursor, nullptr, UNW_INIT_SIGNAL_FRAME), -UNW_EINVAL);
  EXPECT_EQ(unw_init_remote(&cursor, unw_local_addr_space, nullptr), -UNW_EINVAL);
  EXPECT_EQ(unw_step(&cursor), -UNW_EINVAL);
}

// covers: LU24
TEST(Libunwind, BacktraceFromAContext) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  const auto pcs = pcs_from(cursor);
  std::array<void*, 64> addresses{};
  const int count = unw_backtrace2(addresses.data(), static_cast<int>(addresses.size()), &context, 0);
  ASSERT_EQ(static_cast<std::size_t>(count), pcs.size());
  for (std::size_t i = 0; i < pcs.size(); ++i) EXPECT_EQ(reinterpret_cast<unw_word_t>(addresses[i]), pcs[i]) << i;
  EXPECT_EQ(unw_backtrace2(addresses.data(), 0, &context, 0), 0);
  EXPECT_EQ(unw_backtrace2(addresses.data(), 1, &context, 0), 1);
  EXPECT_EQ(unw_backtrace2(addresses.data(), 10, &context, 7), 0);
  EXPECT_GT(unw_backtrace2(addresses.data(), 10, nullptr, 0), 3);
}

#if defined(__x86_64__)
// Loads magic values into all preserved registers, captures, and puts them back.
extern "C" int jitunwind_test_magic_context(void* context);
asm(R"(
        .text
        .globl jitunwind_test_magic_context
        .type jitunwind_test_magic_context, @function
jitunwind_test_magic_context:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        push %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        push %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        push %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        push %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        push %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        sub $8, %rsp
        .cfi_adjust_cfa_offset 8
        mov $0x1003, %ebx
        mov $0x1006, %ebp
        mov $0x100c, %r12d
        mov $0x100d, %r13d
        mov $0x100e, %r14d
        mov $0x100f, %r15d
        call _Ux86_64_getcontext@PLT
        add $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        pop %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        pop %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        pop %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        pop %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        pop %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        ret
        .cfi_endproc
        .size jitunwind_test_magic_context, . - jitunwind_test_magic_context
)");

// covers: LU03 RG01
TEST(Libunwind, ContextHoldsAllPreservedRegisters) {
  unw_context_t context;
  ASSERT_EQ(jitunwind_test_magic_context(&context), 0);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  for (int reg : {3, 6, 12, 13, 14, 15}) {
    unw_word_t value = 0;
    ASSERT_EQ(unw_get_reg(&cursor, reg, &value), 0);
    EXPECT_EQ(value, 0x1000u + static_cast<unsigned>(reg)) << unw_regname(reg);
  }
}
#endif

// covers: LU05
TEST(Libunwind, ACursorNeedsNothingOfTheStackItWasMadeOn) {
  // Our cursors copy the registers: the context may even be overwritten. The interface only promises less.
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  unw_cursor_t same = cursor;
  std::memset(&context, 0x5a, sizeof context);
  EXPECT_EQ(pcs_from(cursor), pcs_from(same));
}

// covers: RG10 RG11
TEST(Libunwind, RegisterNames) {
  // AMD64 ABI, figure 3.36.
  const char* const names[] = {"RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP", "R8",
                               "R9",  "R10", "R11", "R12", "R13", "R14", "R15", "RIP"};
  static_assert(std::size(names) == UNW_REG_LAST + 1);
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) {
    EXPECT_STREQ(unw_regname(reg), names[reg]);
    EXPECT_EQ(unw_is_fpreg(reg), 0);
  }
  for (int reg : {-1, -1000000, 1000000, UNW_REG_LAST + 1}) {
    EXPECT_STREQ(unw_regname(reg), "???");
    EXPECT_EQ(unw_is_fpreg(reg), 0);
  }
}

/// Of a frame that a signal interrupted: each is the kernel's by its own name, and is written there.
// covers: RG01 RG04
TEST(Libunwind, EveryRegisterIsReadAndWrittenByItsOwnNumber) {
  const int in_context[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                            REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  static_assert(std::size(in_context) == UNW_REG_LAST + 1);
  unw_context_t context{};
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) context.uc_mcontext.gregs[in_context[reg]] = 0x1000 + 16 * reg;
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), 0);
  unw_word_t value = 0;
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) {
    ASSERT_EQ(unw_get_reg(&cursor, reg, &value), 0) << unw_regname(reg);
    EXPECT_EQ(value, 0x1000u + 16u * static_cast<unsigned>(reg)) << unw_regname(reg);
  }
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg)
    ASSERT_EQ(unw_set_reg(&cursor, reg, 0x8000u + 16u * static_cast<unsigned>(reg)), 0) << unw_regname(reg);
  for (int reg = 0; reg <= UNW_REG_LAST; ++reg) {
    ASSERT_EQ(unw_get_reg(&cursor, reg, &value), 0);
    EXPECT_EQ(value, 0x8000u + 16u * static_cast<unsigned>(reg)) << unw_regname(reg);
    EXPECT_EQ(context.uc_mcontext.gregs[in_context[reg]], 0x8000 + 16 * reg) << unw_regname(reg);
  }
}

/// Data, where nothing is known: it is said so, and what is asked for is 0.
// covers: LU21 PI01
TEST(Libunwind, UnknownCode) {
  static char data[64];
  unw_context_t context;
  unw_getcontext(&context);
  context.uc_mcontext.gregs[REG_RIP] = reinterpret_cast<greg_t>(data + 32);
  unw_cursor_t cursor;
  for (const int flag : {0, static_cast<int>(UNW_INIT_SIGNAL_FRAME)}) {
    ASSERT_EQ(unw_init_local2(&cursor, &context, flag), 0);
    EXPECT_EQ(unw_is_plt_entry(&cursor), 0);
    unw_proc_info_t info, none{};
    std::memset(&info, 0x5a, sizeof info);
    EXPECT_EQ(unw_get_proc_info(&cursor, &info), -UNW_ENOINFO);
    EXPECT_EQ(std::memcmp(&info, &none, sizeof info), 0);
    std::array<char, 8> name{'x'};
    EXPECT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), nullptr), -UNW_ENOINFO);
    EXPECT_STREQ(name.data(), "");
    context.uc_mcontext.gregs[REG_RBP] = 1;  // no frame record is there, either
    context.uc_mcontext.gregs[REG_RSP] = 8;
    ASSERT_EQ(unw_init_local2(&cursor, &context, flag), 0);
    EXPECT_EQ(unw_is_signal_frame(&cursor), -UNW_ENOINFO);
    EXPECT_EQ(unw_step(&cursor), -UNW_ENOINFO);
  }
}

// covers: PI18 ER01
TEST(Libunwind, ErrorTexts) {
  const char* const texts[] = {"no error",
                               "unspecified (general) error",
                               "out of memory",
                               "bad register number",
                               "attempt to write read-only register",
                               "stop unwinding",
                               "invalid IP",
                               "bad frame",
                               "unsupported operation or bad value",
                               "unwind info has unsupported version",
                               "no unwind info found"};
  for (int i = 0; i < 11; ++i) EXPECT_STREQ(unw_strerror(-i), texts[i]);
  EXPECT_STREQ(unw_strerror(1), "invalid error code");
  EXPECT_STREQ(unw_strerror(-99), "invalid error code");
  EXPECT_STREQ(unw_strerror(INT32_MIN), "invalid error code");
}

// covers: RG09
TEST(Libunwind, RegistersThatDoNotExist) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  unw_word_t value = 0;
  unw_fpreg_t fp;
  unw_save_loc_t location;
  for (int reg : {-1, 9999}) {
    EXPECT_EQ(unw_get_reg(&cursor, reg, &value), -UNW_EBADREG);
    EXPECT_EQ(unw_get_fpreg(&cursor, reg, &fp), -UNW_EBADREG);
    EXPECT_EQ(unw_get_save_loc(&cursor, reg, &location), -UNW_EBADREG);
  }
  EXPECT_EQ(unw_init_local2(&cursor, &context, 2), -UNW_EINVAL);
}

extern "C" [[gnu::noinline]] void jitunwind_test_saves_rbx(unw_cursor_t* cursor, unw_context_t* context) {
  asm volatile("" ::: "rbx");  // the compiler saves it, so that the caller's value lies in this frame
  unw_getcontext(context);
  unw_init_local(cursor, context);
  asm volatile("" ::: "rbx", "memory");
  ASSERT_GT(unw_step(cursor), 0);
  unw_save_loc_t location;
  ASSERT_EQ(unw_get_save_loc(cursor, 3, &location), 0);
  ASSERT_EQ(location.type, UNW_SLT_MEMORY);
  unw_word_t value = 0;
  ASSERT_EQ(unw_get_reg(cursor, 3, &value), 0);
  EXPECT_EQ(*reinterpret_cast<unw_word_t*>(location.u.addr), value);
  EXPECT_GT(location.u.addr, reinterpret_cast<unw_word_t>(__builtin_frame_address(0)) - 4096);
  ASSERT_EQ(unw_get_save_loc(cursor, UNW_REG_SP, &location), 0);
  EXPECT_EQ(location.type, UNW_SLT_NONE);
}

// covers: RG12
TEST(Libunwind, SaveLocations) {
  unw_cursor_t cursor;
  unw_context_t context;
  jitunwind_test_saves_rbx(&cursor, &context);
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unw_save_loc_t location;
  ASSERT_EQ(unw_get_save_loc(&cursor, 12, &location), 0);
  EXPECT_EQ(location.type, UNW_SLT_REG);
  EXPECT_EQ(location.u.regnum, 12);
}

// covers: PI09 PI10
TEST(Libunwind, NamesAreCutAndTerminated) {
  unw_cursor_t cursor;
  unw_word_t sp = 0;
  ASSERT_EQ(jitunwind_test_first_frame(&cursor, &sp), 0);
  const std::string full = "jitunwind_test_first_frame";
  for (std::size_t size = 0; size < full.size() + 3; ++size) {
    std::string buffer(full.size() + 8, 'x');
    unw_word_t offset = 0;
    const int result = unw_get_proc_name(&cursor, buffer.data(), size, &offset);
    EXPECT_EQ(result, size > full.size() ? 0 : -UNW_ENOMEM) << size;
    EXPECT_GT(offset, 0u);
    EXPECT_LT(offset, 200u);
    if (size == 0)
      EXPECT_EQ(buffer[0], 'x');
    else
      EXPECT_EQ(std::string(buffer.c_str()), full.substr(0, size - 1));
    EXPECT_EQ(buffer[size], 'x') << "nothing behind the buffer is written";
  }
}

// covers: PI01
TEST(Libunwind, ProcedureInfo) {
  unw_cursor_t cursor;
  unw_word_t sp = 0;
  ASSERT_EQ(jitunwind_test_first_frame(&cursor, &sp), 0);
  unw_proc_info_t info;
  ASSERT_EQ(unw_get_proc_info(&cursor, &info), 0);
  EXPECT_EQ(info.start_ip, reinterpret_cast<unw_word_t>(&jitunwind_test_first_frame));
  EXPECT_GT(info.end_ip, info.start_ip);
#ifndef __SANITIZE_THREAD__  // which is told of a function's end by a landing pad, too
  EXPECT_EQ(info.handler, 0u);
  EXPECT_EQ(info.lsda, 0u);
#endif
  EXPECT_EQ(info.format, UNW_INFO_FORMAT_TABLE);
  EXPECT_NE(info.unwind_info, nullptr);
  // Some caller of a test body catches C++ exceptions: gtest's own frames have personality and LSDA.
  bool handler_seen = false;
  do {
    if (unw_get_proc_info(&cursor, &info) == 0 && info.handler != 0) {
      handler_seen = info.lsda != 0;
      Dl_info symbol{};
      dladdr(reinterpret_cast<void*>(info.handler), &symbol);
      EXPECT_STREQ(symbol.dli_sname, "__gxx_personality_v0");
    }
  } while (!handler_seen && unw_step(&cursor) > 0);
  EXPECT_TRUE(handler_seen);
}

struct Interrupted {
  static inline std::vector<unw_word_t> pcs;
  static inline std::vector<int> signal_frames;
  static inline unw_word_t rax, rbx;
  static inline int init_result;

  static void on_signal(int, siginfo_t*, void* context) {
    auto* uc = static_cast<ucontext_t*>(context);
    unw_cursor_t cursor;
    init_result = unw_init_local2(&cursor, uc, UNW_INIT_SIGNAL_FRAME);
    unw_get_reg(&cursor, 0, &rax);
    unw_get_reg(&cursor, 3, &rbx);
    pcs = pcs_from(cursor);

    unw_context_t here;  // from inside the handler, over the trampoline
    unw_getcontext(&here);
    unw_init_local(&cursor, &here);
    do signal_frames.push_back(unw_is_signal_frame(&cursor));
    while (unw_step(&cursor) > 0);
    uc->uc_mcontext.gregs[REG_RIP] += 2;  // behind ud2
  }
};

#if defined(__x86_64__)
extern "C" void jitunwind_test_ud2();
asm(R"(
        .text
        .globl jitunwind_test_ud2
        .type jitunwind_test_ud2, @function
jitunwind_test_ud2:
        .cfi_startproc
        ud2
        ret
        .cfi_endproc
        .size jitunwind_test_ud2, . - jitunwind_test_ud2
)");

// covers: LU08 LU09 RG04 LU21
TEST(Libunwind, FromASignalHandlerAtTheFirstInstruction) {
  struct sigaction action {
  }, old{};
  action.sa_sigaction = Interrupted::on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &old);
  asm volatile("mov $0x1234, %%ebx; mov $0x77, %%eax; call jitunwind_test_ud2" ::
                   : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  sigaction(SIGILL, &old, nullptr);
  EXPECT_EQ(Interrupted::init_result, 0);
  ASSERT_GT(Interrupted::pcs.size(), 3u);
  EXPECT_EQ(Interrupted::pcs[0], reinterpret_cast<unw_word_t>(&jitunwind_test_ud2));
  EXPECT_EQ(Interrupted::rax, 0x77u);
  EXPECT_EQ(Interrupted::rbx, 0x1234u);
  ASSERT_GT(Interrupted::signal_frames.size(), 4u);
  for (const int is : Interrupted::signal_frames) EXPECT_GE(is, 0);
  const auto is_signal_frame = [](int is) { return is > 0; };
  EXPECT_EQ(std::ranges::count_if(Interrupted::signal_frames, is_signal_frame), 1) << "exactly at the trampoline";
#ifndef __SANITIZE_THREAD__  // which has frames of its own between
  EXPECT_GT(Interrupted::signal_frames[1], 0);
#endif
}
#endif

#if defined(__x86_64__)
// covers: LU22
TEST(Libunwind, ProcedureLinkageStub) {
  unw_word_t stub = 0;
  asm("lea getppid@PLT(%%rip), %0" : "=r"(stub));
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  EXPECT_EQ(unw_is_plt_entry(&cursor), 0);
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(stub);
  unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME);
  EXPECT_GT(unw_is_plt_entry(&cursor), 0);
}
#endif

void* thread_depth(void* out) {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  int moved = 0;
  while ((moved = unw_step(&cursor)) > 0) {
  }
  *static_cast<int*>(out) = moved;
  return nullptr;
}

// covers: LU12
TEST(Libunwind, ThreadsEndWithoutError) {
  pthread_t thread;
  int last = 1;
  ASSERT_EQ(pthread_create(&thread, nullptr, thread_depth, &last), 0);
  pthread_join(thread, nullptr);
  EXPECT_EQ(last, 0) << unw_strerror(last);
}

// A garbage stack: every answer is an error, none a crash.
TEST(Libunwind, GarbageContexts) {
  unw_context_t context;
  unw_getcontext(&context);
  unsigned errors = 0;
  std::uint64_t random = 88172645463325252u;
  const auto next = [&] {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
  };
  for (int i = 0; i < 20000; ++i) {
    unw_context_t garbage = context;
    auto& regs = garbage.uc_mcontext.gregs;
    const auto spoil = [&](int reg) {
      const std::uint64_t choice = next();
      std::uint64_t value = static_cast<std::uint64_t>(regs[reg]);
      if (choice % 4 == 0) value = next();
      if (choice % 4 == 1) value += next() % 4096;
      if (choice % 4 == 2) value = next() % 65536;
      regs[reg] = static_cast<greg_t>(value);
    };
    for (int reg : {REG_RSP, REG_RBP, REG_RBX}) spoil(reg);
    if (i % 3 == 0) spoil(REG_RIP);
    unw_cursor_t cursor;
    unw_init_local2(&cursor, &garbage, i % 2);
    int moved = 1, steps = 0;
    while ((moved = unw_step(&cursor)) > 0 && ++steps < 1000000) {
      std::array<char, 64> name;
      unw_proc_info_t info;
      (void)unw_get_proc_name(&cursor, name.data(), name.size(), nullptr);
      (void)unw_get_proc_info(&cursor, &info);
    }
    errors += moved < 0;
  }
  EXPECT_GT(errors, 1000u);
}

}  // namespace
