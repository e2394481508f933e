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

#include "tests/libunwind/context_words.h"
#include "tests/libunwind/libunwind_constants.h"
#include "tests/support/pcs_from.h"

extern "C" const std::size_t jitunwind_test_sizes_in_c[9];  // libunwind_abi_test.c

namespace {

using namespace jitunwind::test;

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
  EXPECT_EQ(unw_get_save_loc(&zeros, k_kept, &place), -UNW_EINVAL);
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
  // Our cursors copy the registers, so the context may even be overwritten. The interface promises less.
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
#if defined(__x86_64__)
  // AMD64 ABI, figure 3.36.
  const std::vector<std::string> names = {"RAX", "RDX", "RCX", "RBX", "RSI", "RDI", "RBP", "RSP", "R8",
                                          "R9",  "R10", "R11", "R12", "R13", "R14", "R15", "RIP"};
  ASSERT_EQ(names.size(), std::size_t{UNW_REG_LAST + 1});
#else
  std::vector<std::string> names;
  for (int number = 0; number <= 30; ++number) names.push_back("x" + std::to_string(number));
  names.insert(names.end(), {"sp", "pc"});
#endif
  for (std::size_t reg = 0; reg < names.size(); ++reg) {
    EXPECT_EQ(unw_regname(static_cast<int>(reg)), names[reg]);
    EXPECT_EQ(unw_is_fpreg(static_cast<int>(reg)), 0);
  }
  for (int reg : {-1, -1000000, 1000000, UNW_REG_LAST + 1}) {
    EXPECT_STREQ(unw_regname(reg), "???");
    EXPECT_EQ(unw_is_fpreg(reg), 0);
  }
}

/// The frame was interrupted by a signal: each register is in the kernel's context under its own name, and is written
/// there.
// covers: RG01 RG04
TEST(Libunwind, EveryRegisterIsReadAndWrittenByItsOwnNumber) {
  unw_context_t context{};
  for (const int reg : words_of_context()) set_word(&context, reg, 0x1000u + 16u * static_cast<unsigned>(reg));
  unw_cursor_t cursor;
  ASSERT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), 0);
  unw_word_t value = 0;
  for (const int reg : words_of_context()) {
    ASSERT_EQ(unw_get_reg(&cursor, reg, &value), 0) << unw_regname(reg);
    EXPECT_EQ(value, 0x1000u + 16u * static_cast<unsigned>(reg)) << unw_regname(reg);
  }
  for (const int reg : words_of_context())
    ASSERT_EQ(unw_set_reg(&cursor, reg, 0x8000u + 16u * static_cast<unsigned>(reg)), 0) << unw_regname(reg);
  for (const int reg : words_of_context()) {
    ASSERT_EQ(unw_get_reg(&cursor, reg, &value), 0);
    EXPECT_EQ(value, 0x8000u + 16u * static_cast<unsigned>(reg)) << unw_regname(reg);
    EXPECT_EQ(word(&context, reg), 0x8000u + 16u * static_cast<unsigned>(reg)) << unw_regname(reg);
  }
}

/// The address is data that nothing knows: the result says so, and the outputs are 0.
// covers: LU21 PI01
TEST(Libunwind, UnknownCode) {
  static char data[64];
  unw_context_t context;
  unw_getcontext(&context);
  set_word(&context, k_pc, reinterpret_cast<unw_word_t>(data + 32));
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
    set_word(&context, k_fp, 1);  // no frame record is there, either
    set_word(&context, UNW_REG_SP, 8);
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

extern "C" [[gnu::noinline]] void jitunwind_test_saves_a_register(unw_cursor_t* cursor, unw_context_t* context) {
  asm volatile("" ::: JITUNWIND_TEST_KEPT);  // the compiler saves it, so that the caller's value lies in this frame
  unw_getcontext(context);
  unw_init_local(cursor, context);
  asm volatile("" ::: JITUNWIND_TEST_KEPT, "memory");
  ASSERT_GT(unw_step(cursor), 0);
  unw_save_loc_t location;
  ASSERT_EQ(unw_get_save_loc(cursor, k_kept, &location), 0);
  ASSERT_EQ(location.type, UNW_SLT_MEMORY);
  unw_word_t value = 0;
  ASSERT_EQ(unw_get_reg(cursor, k_kept, &value), 0);
  EXPECT_EQ(*reinterpret_cast<unw_word_t*>(location.u.addr), value);
  EXPECT_GT(location.u.addr, reinterpret_cast<unw_word_t>(__builtin_frame_address(0)) - 4096);
  // The return address is found under the same names as its value.
  for (const int reg : {static_cast<int>(UNW_REG_IP), k_pc}) {
    ASSERT_EQ(unw_get_save_loc(cursor, reg, &location), 0);
    ASSERT_EQ(location.type, UNW_SLT_MEMORY) << unw_regname(reg);
    ASSERT_EQ(unw_get_reg(cursor, reg, &value), 0);
    EXPECT_EQ(*reinterpret_cast<unw_word_t*>(location.u.addr), value);
  }
  ASSERT_EQ(unw_get_save_loc(cursor, UNW_REG_SP, &location), 0);
  EXPECT_EQ(location.type, UNW_SLT_NONE);
}

// covers: RG12
TEST(Libunwind, SaveLocations) {
  unw_cursor_t cursor;
  unw_context_t context;
  jitunwind_test_saves_a_register(&cursor, &context);
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unw_save_loc_t location;
  ASSERT_EQ(unw_get_save_loc(&cursor, k_other_kept, &location), 0);
  EXPECT_EQ(location.type, UNW_SLT_REG);
  EXPECT_EQ(location.u.regnum, k_other_kept);
  ASSERT_EQ(unw_get_save_loc(&cursor, UNW_REG_IP, &location), 0);
  EXPECT_EQ(location.type, UNW_SLT_REG);
  EXPECT_EQ(location.u.regnum, k_pc);
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
  // A caller of a test body catches C++ exceptions: gtest's own frames have a personality and an LSDA. The frame above
  // is gone, so its caller is not asked about.
  unw_context_t context;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
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
  static inline unw_word_t first, kept;
  static inline int init_result;

  static void on_signal(int, siginfo_t*, void* context) {
    unw_cursor_t cursor;
    init_result = unw_init_local2(&cursor, static_cast<unw_context_t*>(context), UNW_INIT_SIGNAL_FRAME);
    unw_get_reg(&cursor, 0, &first);
    unw_get_reg(&cursor, k_kept, &kept);
    pcs = pcs_from(cursor);

    unw_context_t here;  // from inside the handler, over the trampoline
    unw_getcontext(&here);
    unw_init_local(&cursor, &here);
    do signal_frames.push_back(unw_is_signal_frame(&cursor));
    while (unw_step(&cursor) > 0);
    set_word(context, k_pc, word(context, k_pc) + k_trap_bytes);
  }
};

#if defined(__x86_64__)
#define TRAP "ud2"
#else
#define TRAP "udf #0"
#endif
extern "C" void jitunwind_test_trap();
asm(R"(
        .text
        .globl jitunwind_test_trap
        .type jitunwind_test_trap, %function
jitunwind_test_trap:
        .cfi_startproc
        )" TRAP R"(
        ret
        .cfi_endproc
        .size jitunwind_test_trap, . - jitunwind_test_trap
)");

// covers: LU08 LU09 RG04 LU21
TEST(Libunwind, FromASignalHandlerAtTheFirstInstruction) {
  struct sigaction action {
  }, old{};
  action.sa_sigaction = Interrupted::on_signal;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &old);
#if defined(__x86_64__)
  asm volatile("mov $0x1234, %%ebx; mov $0x77, %%eax; call jitunwind_test_trap" ::
                   : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
#else
  asm volatile("mov x19, #0x1234; mov x0, #0x77; bl jitunwind_test_trap" ::: "x0", "x19", "x30", "memory");
#endif
  sigaction(SIGILL, &old, nullptr);
  EXPECT_EQ(Interrupted::init_result, 0);
  ASSERT_GT(Interrupted::pcs.size(), 3u);
  EXPECT_EQ(Interrupted::pcs[0], reinterpret_cast<unw_word_t>(&jitunwind_test_trap));
  EXPECT_EQ(Interrupted::first, 0x77u);
  EXPECT_EQ(Interrupted::kept, 0x1234u);
  ASSERT_GT(Interrupted::signal_frames.size(), 4u);
  for (const int is : Interrupted::signal_frames) EXPECT_GE(is, 0);
  const auto is_signal_frame = [](int is) { return is > 0; };
  EXPECT_EQ(std::ranges::count_if(Interrupted::signal_frames, is_signal_frame), 1) << "exactly at the trampoline";
#ifndef __SANITIZE_THREAD__  // which has frames of its own between
  EXPECT_GT(Interrupted::signal_frames[1], 0);
#endif
}

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
  set_word(&context, k_pc, stub);
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

#ifdef JITUNWIND_EMULATED  // where each takes thirty times as long
constexpr int k_garbage = 1000;
#else
constexpr int k_garbage = 20000;
#endif

// The stack is garbage: every answer is an error, and nothing crashes.
TEST(Libunwind, GarbageContexts) {
  unw_context_t context;
  unw_getcontext(&context);
  unsigned errors = 0;
  std::uint64_t random = 88172645463325252u;
  const auto next = [&] {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return random;
  };
  for (int i = 0; i < k_garbage; ++i) {
    unw_context_t garbage = context;
    const auto spoil = [&](int reg) {
      const std::uint64_t choice = next();
      std::uint64_t value = word(&garbage, reg);
      if (choice % 4 == 0) value = next();
      if (choice % 4 == 1) value += next() % 4096;
      if (choice % 4 == 2) value = next() % 65536;
      set_word(&garbage, reg, value);
    };
    for (const int reg : {static_cast<int>(UNW_REG_SP), k_fp, k_kept}) spoil(reg);
    if (i % 3 == 0) spoil(k_pc);
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
  EXPECT_GT(errors, unsigned{k_garbage} / 20);
}

}  // namespace
