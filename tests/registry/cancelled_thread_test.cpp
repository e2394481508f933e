// A thread that is cancelled while it registers, cancels, waits or walks continues until it comes back: no function is
// a cancellation point, since in a noexcept one the process would end.
#include <jitunwind/gdb.h>
#include <jitunwind/jitunwind.h>

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <utility>

#include "tests/registry/procedures.h"

#include "frame_code.h"

namespace jitunwind {
namespace {

using registry_test::procedure;

constexpr std::uint64_t k_cancelled_code = 0x41000000;

/// A thread with a pending or coming cancellation, which takes effect when the thread asks for it.
class CancelledThread {
 public:
  explicit CancelledThread(std::function<void()> work) : work_(std::move(work)) {
    EXPECT_EQ(pthread_create(&thread_, nullptr, &run, this), 0);
  }
  void cancel() { EXPECT_EQ(pthread_cancel(thread_), 0); }
  void expect_cancelled_after_work() {
    void* result = nullptr;
    EXPECT_EQ(pthread_join(thread_, &result), 0);
    EXPECT_TRUE(came_back_);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }

 private:
  static void* run(void* self) {
    auto* const thread = static_cast<CancelledThread*>(self);
    thread->work_();
    thread->came_back_ = true;
    for (;;) pthread_testcancel();
  }

  std::function<void()> work_;
  std::atomic<bool> came_back_{false};
  pthread_t thread_;
};

TEST(CancelledThread, ThatWaitsForALookupGoesOnWaiting) {
  static unw_dyn_info_t info;
  info = procedure(k_cancelled_code, 64);
  ASSERT_TRUE(register_procedure(&info));
  std::optional<ProcedureHold> hold(std::in_place, k_cancelled_code);
  ASSERT_EQ(hold->info(), &info);
  std::atomic<bool> is_out{false};
  CancelledThread thread([&] { is_out = static_cast<bool>(cancel_procedure(&info)); });
  while (registry_test::lookup(k_cancelled_code)) ::usleep(100);
  ::usleep(20'000);  // longer than it spins: it sleeps between its looks
  thread.cancel();
  ::usleep(20'000);
  EXPECT_FALSE(is_out);
  hold.reset();
  thread.expect_cancelled_after_work();
  EXPECT_TRUE(is_out);
}

void write_and_walk() {
  constexpr std::size_t k_size = sizeof test::FrameCode::k_bytes;
  const auto described = test::FrameCode::described("cancelled").build();
  ASSERT_TRUE(described);
  alignas(16) static std::array<std::byte, 4096> code;
  for (std::size_t at = 0; at < code.size(); at += 64) {
    auto registered = register_code(*described, code.data() + at, k_size);
    ASSERT_TRUE(registered);
    if (at % 128 == 0)
      EXPECT_TRUE(registered->retire());
    else
      EXPECT_TRUE(registered->cancel());
  }
  std::array<char, 256> name;
  unsigned named = 0;
  for (const Frame& frame : walk_here()) named += frame.raw_name(name) ? 1 : 0;
  EXPECT_GT(named, 2u);
  std::array<void*, 64> frames;
  EXPECT_GT(backtrace(frames), 2u);
}

TEST(CancelledThread, ThatWritesAndWalksComesBack) {
  CancelledThread thread([] {
    pthread_cancel(pthread_self());
    write_and_walk();
  });
  thread.expect_cancelled_after_work();
}

/// Telling debuggers asks, before each change, what traces the process.
TEST(CancelledThread, ThatTellsDebuggersComesBack) {
  ASSERT_TRUE(attach_gdb());
  CancelledThread thread([] {
    pthread_cancel(pthread_self());
    write_and_walk();
    EXPECT_TRUE(detach_gdb());
  });
  thread.expect_cancelled_after_work();
}

}  // namespace
}  // namespace jitunwind
