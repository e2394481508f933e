// unw_set_reg: the places that values go to, and registers that cannot be written.
#include <gtest/gtest.h>
#include <libunwind.h>

#include "tests/resume/magic_frame.h"
#include "tests/support/fake_space.h"
#include "tests/support/jit_frame.h"

namespace jitunwind {
namespace {

using test::address_of;
using test::JitFrame;

void expect_written(unw_cursor_t& cursor, int reg, unw_word_t value) {
  EXPECT_EQ(unw_set_reg(&cursor, reg, value), 0) << reg;
  unw_word_t read_back = 0;
  EXPECT_EQ(unw_get_reg(&cursor, reg, &read_back), 0) << reg;
  EXPECT_EQ(read_back, value) << reg;
}

struct ChangeAndReturn {
  const JitFrame* frame;
  int reg;
  int result = 1;
};

/// magic_frame's rbx and rbp are in the JIT frame's slots; the others are in frames of C++ functions or still in the
/// registers.
void* change_grandparent(void* argument) {
  auto& change = *static_cast<ChangeAndReturn*>(argument);
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unw_word_t ip = 0;
  while (unw_get_reg(&cursor, UNW_REG_IP, &ip) == 0 && ip != address_of(magic_frame_behind_call))
    if (unw_step(&cursor) <= 0) return nullptr;
  change.result = unw_set_reg(&cursor, change.reg, 4711);
  unw_word_t read_back = 0;
  if (change.result == 0) change.result = unw_get_reg(&cursor, change.reg, &read_back);
  EXPECT_EQ(read_back, 4711u);
  return nullptr;
}

void through_jit_frame(void* argument) {
  const auto& change = *static_cast<ChangeAndReturn*>(argument);
  (*change.frame)(change_grandparent, argument);
}

// covers: RG06
TEST(WriteRegisters, CountWhenTheFrameIsReturnedTo) {
  const JitFrame frame;
  ChangeAndReturn change{&frame, UNW_X86_64_RBX};
  Arrival arrival{};
  magic_frame(through_jit_frame, &change, &arrival);
  EXPECT_EQ(change.result, 0);
  EXPECT_EQ(arrival.rbx, 4711u);
  EXPECT_EQ(arrival.rbp, test::k_magic + 6);
  change.reg = UNW_X86_64_RBP;
  magic_frame(through_jit_frame, &change, &arrival);
  EXPECT_EQ(arrival.rbx, test::k_magic + 3);
  EXPECT_EQ(arrival.rbp, 4711u);
}

// covers: RG06
TEST(WriteRegisters, OfTheFirstFrameGoToTheContext) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  expect_written(cursor, UNW_X86_64_R13, 99);
  EXPECT_EQ(context.uc_mcontext.gregs[REG_R13], 99);
}

// covers: RG07
TEST(WriteRegisters, IpAndSpCanBeWrittenTheCfaCannot) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  EXPECT_EQ(unw_set_reg(&cursor, UNW_X86_64_CFA, 1), -UNW_EREADONLYREG);
  expect_written(cursor, UNW_REG_SP, 0x5000);
  expect_written(cursor, UNW_REG_IP, 0x6000);
}

// Calls the function with the address of a cursor; returns when the cursor is resumed at the label below, on any stack.
// Returns SP there.
extern "C" unw_word_t jitunwind_test_lands(void (*function)(void*), void* argument);
extern "C" void jitunwind_test_landing();
asm(R"(
        .text
        .globl jitunwind_test_lands
        .type jitunwind_test_lands, @function
jitunwind_test_lands:
        .cfi_startproc
        push %rbx
        .cfi_adjust_cfa_offset 8
        push %rbp
        .cfi_adjust_cfa_offset 8
        push %r12
        .cfi_adjust_cfa_offset 8
        push %r13
        .cfi_adjust_cfa_offset 8
        push %r14
        .cfi_adjust_cfa_offset 8
        push %r15
        .cfi_adjust_cfa_offset 8
        sub $8, %rsp
        .cfi_adjust_cfa_offset 8
        mov %rsp, jitunwind_test_left_at(%rip)
        mov %rdi, %rax
        mov %rsi, %rdi
        call *%rax
        ud2
        .globl jitunwind_test_landing
jitunwind_test_landing:
        mov %rsp, %rax
        mov jitunwind_test_left_at(%rip), %rsp
        add $8, %rsp
        .cfi_adjust_cfa_offset -8
        pop %r15
        .cfi_adjust_cfa_offset -8
        pop %r14
        .cfi_adjust_cfa_offset -8
        pop %r13
        .cfi_adjust_cfa_offset -8
        pop %r12
        .cfi_adjust_cfa_offset -8
        pop %rbp
        .cfi_adjust_cfa_offset -8
        pop %rbx
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size jitunwind_test_lands, . - jitunwind_test_lands
        .local jitunwind_test_left_at
        .comm jitunwind_test_left_at, 8, 8
)");

// covers: RG07
TEST(WriteRegisters, AResumeLandsOnTheStackThatWasWritten) {
  alignas(16) static char stack[4096];
  const auto elsewhere = reinterpret_cast<unw_word_t>(stack) + 2048;
  static int resumed;
  resumed = 0;
  const auto resume_there = [](void* sp) {
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    EXPECT_EQ(unw_set_reg(&cursor, UNW_REG_IP, reinterpret_cast<unw_word_t>(&jitunwind_test_landing)), 0);
    EXPECT_EQ(unw_set_reg(&cursor, UNW_REG_SP, reinterpret_cast<unw_word_t>(sp)), 0);
    // There are no objects with destructors, because the resume leaves the frame.
    resumed = unw_resume(&cursor);
  };
  EXPECT_EQ(jitunwind_test_lands(resume_there, reinterpret_cast<void*>(elsewhere)), elsewhere);
  EXPECT_EQ(resumed, 0) << unw_strerror(resumed);
}

// covers: RG08 RG09 RG03
TEST(WriteRegisters, OnlyWhatHasAValueOrPassesExceptions) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(unw_set_reg(&cursor, UNW_X86_64_RCX, 1), -UNW_EBADREG);
  EXPECT_EQ(unw_set_reg(&cursor, 9999, 1), -UNW_EBADREG);
  EXPECT_EQ(unw_set_reg(&cursor, -1, 1), -UNW_EBADREG);
  for (int i = 0; i < UNW_NUM_EH_REGS; ++i) expect_written(cursor, UNW_REG_EH + i, static_cast<unw_word_t>(1000 + i));
  EXPECT_EQ(unw_set_fpreg(&cursor, 17, 1.0L), -UNW_EBADREG) << "x86-64 preserves none";
  unw_fpreg_t number;
  EXPECT_EQ(unw_get_fpreg(&cursor, 17, &number), -UNW_EBADREG);
}

// covers: RG07
TEST(WriteRegisters, SlotsThatCannotBeWrittenAreRefused) {
  test::FakeSpace fake(arch::x86_64);  // its memory takes no writes
  fake.rows.add({0x1000, 0x1100}, "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
  fake.memory.put(0x8000, 77);
  fake.memory.put(0x8008, 0x2010);
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"rbx", 5}, {"r12", 12}});
  ASSERT_TRUE(*cursor.step());
  const Status refused = cursor.set(3, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(unw_error(refused.error().code), UNW_EREADONLYREG);
  EXPECT_EQ(*cursor.get(3), 77u) << "nothing has changed";
  EXPECT_TRUE(cursor.set(12, 1)) << "still in the register";
  const Status ip = cursor.set(16, 0x3000);
  ASSERT_FALSE(ip);
  EXPECT_EQ(cursor.pc(), 0x2010u);
}

}  // namespace
}  // namespace jitunwind
