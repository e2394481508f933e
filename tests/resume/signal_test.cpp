// Resuming across signal frames: registers, floating-point state and signal mask as the kernel saved them.
#include <fenv.h>
#include <gtest/gtest.h>
#include <libunwind.h>
#include <signal.h>

#include <cstring>

#include "tests/resume/magic_frame.h"
#include "tests/support/jit_frame.h"

extern "C" {
struct Interrupted {
  std::uint64_t rax, rcx, rdx, rdi, r8, r11, flags, xmm7;
};
/// Loads every field, traps with ud2, and writes the fields back behind the trap.
void trap_with_registers(Interrupted*);
extern const char trap_instruction[];
}

namespace jitunwind {
namespace {

using test::address_of;
using test::JitFrame;

bool is_blocked(int signal) {
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

class Handler {
 public:
  Handler(int signal, void (*handler)(int, siginfo_t*, void*), int flags = 0) : signal_(signal) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGUSR2);
    ::sigaction(signal, &action, &before_);
  }
  ~Handler() { ::sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_;
};

/// Walks from here through the handler to the frame that returns to `pc` or was interrupted there.
bool step_to(unw_cursor_t& cursor, std::uint64_t pc) {
  unw_word_t ip = 0;
  while (unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip != pc)
    if (unw_step(&cursor) <= 0) return false;
  return true;
}

void to_magic_frame(int, siginfo_t*, void*) {
  EXPECT_TRUE(is_blocked(SIGUSR1));
  EXPECT_TRUE(is_blocked(SIGUSR2));
  ::feclearexcept(FE_ALL_EXCEPT);
  ::fesetround(FE_DOWNWARD);
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  ASSERT_TRUE(step_to(cursor, address_of(magic_frame_behind_call)));
  unw_set_reg(&cursor, UNW_REG_EH, 42);
  unw_resume(&cursor);
}

void* raise_signal(void*) {
  ::raise(SIGUSR1);
  ADD_FAILURE() << "the handler returned";
  return nullptr;
}
void raise_under_jit_frame(void* argument) { (*static_cast<const JitFrame*>(argument))(raise_signal, nullptr); }

void expect_clean_arrival(const JitFrame& frame) {
  Arrival arrival{};
  ::fesetround(FE_UPWARD);
  magic_frame(raise_under_jit_frame, const_cast<JitFrame*>(&frame), &arrival);
  EXPECT_EQ(::fegetround(), FE_UPWARD) << "control words are those of the interrupted code";
  ::fesetround(FE_TONEAREST);
  EXPECT_TRUE(test::preserved_are_magic(arrival));
  EXPECT_EQ(arrival.rax, 42u);
  EXPECT_FALSE(is_blocked(SIGUSR1));
  EXPECT_FALSE(is_blocked(SIGUSR2));
}

// covers: RS03 RS04
TEST(ResumeAcrossSignals, IntoAFrameBelowTheInterruptedOne) {
  const JitFrame frame;
  const Handler handler(SIGUSR1, to_magic_frame);
  for (int i = 0; i < 3; ++i) expect_clean_arrival(frame);
}

// covers: RS03
TEST(ResumeAcrossSignals, FromAnAlternateStackOverAndOver) {
  alignas(16) static char memory[64 * 1024];
  const stack_t alternate{memory, 0, sizeof memory};
  ASSERT_EQ(::sigaltstack(&alternate, nullptr), 0);
  const JitFrame frame;
  const Handler handler(SIGUSR1, to_magic_frame, SA_ONSTACK);
  for (int i = 0; i < 3; ++i) expect_clean_arrival(frame);
  stack_t now;
  ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
  EXPECT_EQ(now.ss_flags, 0) << "the kernel believes that the thread has left it";
  const stack_t none{nullptr, SS_DISABLE, 0};
  ::sigaltstack(&none, nullptr);
}

void back_into_interrupted_code(int, siginfo_t*, void*) {
  asm volatile("pcmpeqd %%xmm7, %%xmm7" ::: "xmm7");
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  ASSERT_TRUE(step_to(cursor, address_of(trap_instruction)));
  unw_word_t rdi = 0;
  EXPECT_EQ(unw_get_reg(&cursor, UNW_X86_64_RDI, &rdi), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_X86_64_R8, 0x8888), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_IP, address_of(trap_instruction) + 2), 0);
  unw_resume(&cursor);
}

constexpr Interrupted k_before{1, 2, 3, 4, 5, 6, 0xcd5, 0x7777'0000'7777};  // flags with CF, DF and OF

Interrupted trap() {
  Interrupted values = k_before;
  trap_with_registers(&values);
  return values;
}

// covers: RS03 RG04 RG07
TEST(ResumeAcrossSignals, IntoTheInterruptedCodeWithAllOfItsRegisters) {
  const Handler handler(SIGILL, back_into_interrupted_code);
  Interrupted expected = k_before;
  expected.r8 = 0x8888;
  const Interrupted after = trap();
  expected.flags = (after.flags & ~std::uint64_t{0xcd5}) | 0xcd5;  // the kernel adds RF, IF and the like
  EXPECT_EQ(std::memcmp(&after, &expected, sizeof after), 0);
  EXPECT_FALSE(is_blocked(SIGILL));
}

void change_and_return(int, siginfo_t*, void* context) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, static_cast<unw_context_t*>(context), UNW_INIT_SIGNAL_FRAME);
  EXPECT_EQ(unw_set_reg(&cursor, UNW_X86_64_RCX, 0x1234), 0);
  EXPECT_EQ(unw_set_reg(&cursor, UNW_REG_IP, address_of(trap_instruction) + 2), 0);
}

// covers: RG06 RG07
TEST(ResumeAcrossSignals, WhatIsWrittenCountsWhenTheHandlerReturns) {
  const Handler handler(SIGILL, change_and_return);
  EXPECT_EQ(trap().rcx, 0x1234u);
}

void resume_handlers_context(int, siginfo_t*, void* context) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, static_cast<unw_context_t*>(context), UNW_INIT_SIGNAL_FRAME);
  unw_set_reg(&cursor, UNW_REG_IP, address_of(trap_instruction) + 2);
  unw_set_reg(&cursor, UNW_X86_64_RAX, 0x77);
  unw_resume(&cursor);
}

// covers: RS03
TEST(ResumeAcrossSignals, FromTheHandlersOwnContext) {
  const Handler handler(SIGILL, resume_handlers_context);
  const Interrupted after = trap();
  EXPECT_EQ(after.rax, 0x77u);
  EXPECT_EQ(after.r11, 6u);
  EXPECT_EQ(after.xmm7, k_before.xmm7);
  EXPECT_FALSE(is_blocked(SIGUSR2));
}

}  // namespace
}  // namespace jitunwind
