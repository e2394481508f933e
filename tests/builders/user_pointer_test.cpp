// Frames return the pointer that a procedure was registered with, in signal handlers too, whatever the form of the
// description is. It is null if the library's own registration was not used.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

struct Method {
  int id;
};

/// The code of a JitFrame under another registration, newer than its own.
Registration registered_again(const JitFrame& frame, const Description& description, void* user) {
  auto made = register_code(description, {.start = frame.start(), .size = frame.size(), .user = user});
  EXPECT_TRUE(made) << made.error().what;
  return std::move(*made);
}

Description by_directives() { return *JitFrame::described().build(); }
Description by_rows() {
  auto builder = x86_64::describe("jit_frame");
  builder.row_at(0, "cfa=rsp+32 rbx=[cfa-16] rbp=[cfa-24] ra=[cfa-8]");
  return *builder.build();
}

/// Returns the user pointer of the frame at the call in `frame`.
void* user_of(const JitFrame& frame) {
  struct Seen {
    const JitFrame* frame;
    void* user = nullptr;
    bool found = false;
  } seen{&frame};
  frame(
      [](void* argument) {
        auto& s = *static_cast<Seen*>(argument);
        for (const Frame& f : walk_here())
          if (f.pc() == s.frame->return_address()) s.user = f.user(), s.found = true;
        return argument;
      },
      &seen);
  EXPECT_TRUE(seen.found);
  return seen.user;
}

TEST(UserPointer, ComesBackFromFrames) {
  const JitFrame frame;
  EXPECT_EQ(user_of(frame), nullptr);
  Method one{1}, two{2};
  for (const Description& description : {by_directives(), by_rows()}) {
    const Registration first = registered_again(frame, description, &one);
    EXPECT_EQ(user_of(frame), &one);
    {
      const Registration newer = registered_again(frame, description, &two);
      EXPECT_EQ(user_of(frame), &two);
    }
    EXPECT_EQ(user_of(frame), &one);
  }
  EXPECT_EQ(user_of(frame), nullptr);
}

TEST(UserPointer, IsOfEachOfABatch) {
  const JitFrame a, b;
  Method one{1}, two{2};
  const Description description = by_directives();
  const std::array items{RegistrationBatch::Item{&description, {.start = a.start(), .size = a.size(), .user = &one}},
                         RegistrationBatch::Item{&description, {.start = b.start(), .size = b.size(), .user = &two}}};
  RegistrationBatch batch;
  ASSERT_TRUE(batch.register_code(items));
  EXPECT_EQ(user_of(a), &one);
  EXPECT_EQ(user_of(b), &two);
}

TEST(UserPointer, IsNotWhatLiesBehindForeignDescriptors) {
  const JitFrame frame;
  struct {
    unw_dyn_info_t info{};
    std::uint64_t behind = 0x1234567812345678;
  } foreign;
  foreign.info.start_ip = frame.start();
  foreign.info.end_ip = frame.start() + frame.size();
  foreign.info.format = UNW_INFO_FORMAT_DYNAMIC;
  const Description keeps_regions = by_directives();
  foreign.info.u.pi.regions = const_cast<unw_dyn_region_info_t*>(keeps_regions.shape().regions());
  ASSERT_TRUE(register_procedure(&foreign.info));
  EXPECT_EQ(user_of(frame), nullptr);
  ASSERT_TRUE(cancel_procedure(&foreign.info));
}

void* g_user = nullptr;
Addr g_return_address = 0;
void on_signal(int, siginfo_t*, void* context) {
  Walk walk(cursor_at(context, Cursor::Top::interrupted));
  for (const Frame& f : walk)
    if (f.pc() == g_return_address) g_user = f.user();
}

TEST(UserPointer, ComesBackInSignalHandlers) {
  const JitFrame frame;
  Method method{7};
  const Registration registration = registered_again(frame, by_directives(), &method);
  struct sigaction action = {}, before;
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGUSR1, &action, &before);
  g_return_address = frame.return_address();
  frame([](void* argument) { return ::raise(SIGUSR1), argument; }, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(g_user, &method);
  EXPECT_EQ(static_cast<Method*>(g_user)->id, 7);
}

}  // namespace
}  // namespace jitunwind::test
