// Non-local goto over static frames and frames made at run time.
#include <gtest/gtest.h>
#include <libunwind.h>

#include <functional>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/walk/resume.h"
#include "tests/resume/magic_frame.h"
#include "tests/support/jit_frame.h"

namespace jitunwind {
namespace {

using test::address_of;
using test::JitFrame;
using test::preserved_are_magic;

/// Steps until the frame whose return address is `pc`.
bool step_to(unw_cursor_t& cursor, std::uint64_t pc) {
  unw_word_t ip = 0;
  do {
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (ip == pc) return true;
  } while (unw_step(&cursor) > 0);
  return false;
}

/// Calls `f` through every frame of a list, innermost first, with static frames in between.
struct Calls {
  const JitFrame* frames;
  std::size_t count;
  std::function<void()> f;
};

[[gnu::noinline]] void* call_next(void* argument) {
  auto* calls = static_cast<Calls*>(argument);
  if (calls->count == 0) {
    calls->f();
    return nullptr;
  }
  const JitFrame& frame = calls->frames[--calls->count];
  void* result = frame(call_next, calls);
  asm volatile("" ::: "rbx", "rbp", "r12", "r13", "r14", "r15");
  return result;
}
void call_first(void* argument) { (void)call_next(argument); }

Arrival in_magic_frame(std::size_t jit_frames, std::function<void()> f) {
  JitFrame frames[3];
  Calls calls{frames, jit_frames, std::move(f)};
  Arrival arrival{};
  magic_frame(call_first, &calls, &arrival);
  return arrival;
}

// covers: RS01 RS02
TEST(Resume, OverStaticFramesAndFramesMadeAtRunTime) {
  for (const std::size_t jit_frames : {0u, 1u, 2u, 3u}) {
    int returned = 0;
    const Arrival arrival = in_magic_frame(jit_frames, [&] {
      unw_context_t context;
      unw_cursor_t cursor;
      unw_getcontext(&context);
      unw_init_local(&cursor, &context);
      ASSERT_TRUE(step_to(cursor, address_of(magic_frame_behind_call)));
      asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
      const int error = unw_resume(&cursor);
      ++returned;
      FAIL() << unw_strerror(error);
    });
    EXPECT_EQ(returned, 0);
    EXPECT_TRUE(preserved_are_magic(arrival)) << jit_frames;
    EXPECT_EQ(arrival.at_landing, 0u);
  }
}

void resume_by_cpp(void*) {
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    if (frame.pc() != address_of(magic_frame_behind_call)) continue;
    Cursor cursor = frame.cursor();
    EXPECT_TRUE(cursor.set(0, 7));
    EXPECT_TRUE(cursor.set(3, 1234));
    EXPECT_TRUE(cursor.set(cursor.space().arch.pc, address_of(magic_frame_landing)));
    const Status failed = resume(cursor);
    ADD_FAILURE() << failed.error().what;
  }
}

// covers: RS01 RS04
TEST(Resume, ByTheCppInterfaceAtAnotherPc) {
  Arrival arrival{};
  magic_frame(resume_by_cpp, nullptr, &arrival);
  EXPECT_EQ(arrival.at_landing, 1u);
  EXPECT_EQ(arrival.rax, 7u);
  EXPECT_EQ(arrival.rbx, 1234u);
  EXPECT_EQ(arrival.r15, test::k_magic + 15);
}

// covers: RS04 RG08
TEST(Resume, ExceptionRegistersAreInstalledInOrdinaryFrames) {
  const Arrival arrival = in_magic_frame(2, [] {
    unw_context_t context;
    unw_cursor_t cursor;
    unw_getcontext(&context);
    unw_init_local(&cursor, &context);
    ASSERT_TRUE(step_to(cursor, address_of(magic_frame_behind_call)));
    unw_word_t value = 0;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_EH, &value), -UNW_EBADREG) << "no value before it is written";
    ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_EH, 42), 0);
    ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_EH + 1, 43), 0);
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_EH, &value), 0);
    EXPECT_EQ(value, 42u);
    unw_resume(&cursor);
  });
  EXPECT_EQ(arrival.rax, 42u);
  EXPECT_EQ(arrival.rdx, 43u);
  EXPECT_TRUE(preserved_are_magic(arrival));
}

// covers: RS07
TEST(Resume, RefusesWhatCannotBeResumed) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unw_cursor_t bad_ip = cursor, bad_frame = cursor, odd_frame = cursor;
  static int data = 0;
  for (const unw_word_t ip : {unw_word_t{0}, unw_word_t{0xdead'0000'0000'0000}, unw_word_t{address_of(&data)}}) {
    ASSERT_EQ(unw_set_reg(&bad_ip, UNW_REG_IP, ip), 0);
    EXPECT_EQ(unw_resume(&bad_ip), -UNW_EINVALIDIP) << ip;
  }
  ASSERT_EQ(unw_set_reg(&bad_frame, UNW_REG_SP, 0), 0);
  EXPECT_EQ(unw_resume(&bad_frame), -UNW_EBADFRAME);
  unw_word_t sp = 0;
  unw_get_reg(&odd_frame, UNW_REG_SP, &sp);
  ASSERT_EQ(unw_set_reg(&odd_frame, UNW_REG_SP, sp + 1), 0);
  EXPECT_EQ(unw_resume(&odd_frame), -UNW_EBADFRAME);
  unw_cursor_t nowhere = cursor;
  for (const unw_word_t unmapped : {unw_word_t{0x12340}, unw_word_t{0xffff'8000'0000'0000}}) {
    ASSERT_EQ(unw_set_reg(&nowhere, UNW_REG_SP, unmapped), 0);
    EXPECT_EQ(unw_resume(&nowhere), -UNW_EBADFRAME) << unmapped;
  }
  // The context was not made by a kernel, but is passed as a signal handler's: nothing behind it may be read.
  unw_context_t unchanged;
  unw_getcontext(&unchanged);
  const Arch& arch = *host_arch();
  Cursor made(local_space(), registers_from_ucontext(&unchanged, arch), Cursor::Top::interrupted);
  const Status refused = resume(made);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

int g_personality_calls = 0;
int counting_personality() {
  ++g_personality_calls;
  return 3;  // _URC_FATAL_PHASE1_ERROR
}

// covers: RS08
TEST(Resume, CallsNoPersonalityRoutine) {
  const JitFrame frame(address_of(reinterpret_cast<const void*>(&counting_personality)), 0);
  struct Landing {
    static void go(void* argument) { (*static_cast<const JitFrame*>(argument))(&resume, nullptr); }
    static void* resume(void*) {
      unw_context_t context;
      unw_cursor_t cursor;
      unw_getcontext(&context);
      unw_init_local(&cursor, &context);
      unw_proc_info_t info;
      bool seen = false;
      while (unw_step(&cursor) > 0) {
        unw_word_t ip = 0;
        unw_get_reg(&cursor, UNW_REG_IP, &ip);
        unw_get_proc_info(&cursor, &info);
        seen = seen || info.handler == address_of(reinterpret_cast<const void*>(&counting_personality));
        if (ip == address_of(magic_frame_behind_call)) break;
      }
      EXPECT_TRUE(seen);
      unw_resume(&cursor);
      return nullptr;
    }
  };
  Arrival arrival{};
  magic_frame(&Landing::go, const_cast<JitFrame*>(&frame), &arrival);
  EXPECT_TRUE(preserved_are_magic(arrival));
  EXPECT_EQ(g_personality_calls, 0);
}

void resume_in_pushing_frame(void* argument) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  ASSERT_TRUE(step_to(cursor, address_of(pushing_frame_behind_call)));
  if (argument) {
    ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_IP, address_of(pushing_frame_landing)), 0);
  }
  unw_resume(&cursor);
}

// Code behind a call removes the arguments itself; a landing pad expects that they are gone.
// covers: RS10
TEST(Resume, PushedArgumentsAreTakenOff) {
  int anything = 0;
  EXPECT_EQ(pushing_frame(resume_in_pushing_frame, nullptr), 0);
  EXPECT_EQ(pushing_frame(resume_in_pushing_frame, &anything), 1000);
}

}  // namespace
}  // namespace jitunwind
