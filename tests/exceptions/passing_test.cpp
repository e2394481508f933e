// Other tasks of the C++ run-time's unwinder: cancelled and exiting threads, uncaught exceptions, several threads at
// once, signal handlers.
#include <gtest/gtest.h>

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {
namespace {

/// Every kind of frame, with C++ in between; objects on the stack are counted.
class Frames {
 public:
  Frames() {
    for (const FrameKind kind : k_frame_kinds) frames_.push_back(std::make_unique<FrameOfKind>(kind));
  }
  /// Calls `innermost` below all of them, on any thread.
  void run(void (*innermost)()) const {
    progress = {this, 0, innermost};
    deeper();
  }
  std::size_t size() const { return frames_.size(); }

  static inline thread_local int alive = 0;
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
  };

 private:
  struct Progress {
    const Frames* frames;
    std::size_t next;
    void (*innermost)();
  };
  static inline thread_local Progress progress{};
  static void deeper() {
    const Counted counted;
    if (progress.next == progress.frames->size()) return progress.innermost();
    (*progress.frames->frames_[progress.next++])(deeper);
  }

  std::vector<std::unique_ptr<FrameOfKind>> frames_;
};

/// The state that a thread leaves behind when it ends below the frames.
struct Left {
  std::atomic<int> alive{-1};
  std::atomic<int> reached{0};
  pthread_key_t key;
};
Left g_left;
const Frames* g_frames;

void note_alive(void*) { g_left.alive = Frames::alive; }

enum class How { cancelled, by_itself };

/// Runs a thread with this body and returns its result.
void* run_thread(How how, void* (*body)(void*)) {
  g_left.alive = -1;
  g_left.reached = 0;
  EXPECT_EQ(pthread_key_create(&g_left.key, note_alive), 0);
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
  void* result = nullptr;
  if (how == How::cancelled) {
    while (g_left.reached == 0) std::this_thread::yield();
    EXPECT_EQ(pthread_cancel(thread), 0);
  }
  EXPECT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(pthread_key_delete(g_left.key), 0);
  return result;
}

void wait_to_be_cancelled() {
  g_left.reached = 1;
  for (;;) pause();
}

void exit_thread() {
  g_left.reached = 1;
  pthread_exit(&g_left);
}

TEST(ThreadsThatEnd, CancelledBelowRegisteredCode) {
  const Frames frames;
  g_frames = &frames;
  void* const result = run_thread(How::cancelled, [](void*) -> void* {
    pthread_setspecific(g_left.key, &g_left);
    const Frames::Counted above;
    g_frames->run(wait_to_be_cancelled);
    return nullptr;
  });
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_EQ(g_left.alive, 0) << "objects that were not destroyed";
}

TEST(ThreadsThatEnd, ExitedBelowRegisteredCode) {
  const Frames frames;
  g_frames = &frames;
  void* const result = run_thread(How::by_itself, [](void*) -> void* {
    pthread_setspecific(g_left.key, &g_left);
    const Frames::Counted above;
    g_frames->run(exit_thread);
    return nullptr;
  });
  EXPECT_EQ(result, &g_left);
  EXPECT_EQ(g_left.alive, 0) << "objects that were not destroyed";
  EXPECT_EQ(g_left.reached, 1);
}

// Uncaught exceptions. The parent judges the output of the terminate handler.

/// Reports whether the trace continues to the frames that main was called from.
void report_trace() {
  std::array<void*, 200> trace;
  const int depth = backtrace(trace.data(), static_cast<int>(trace.size()));
  int in_frames = 0;
  char** const names = backtrace_symbols(trace.data(), depth);
  const std::string last = depth > 0 ? names[depth - 2] : "";
  for (int i = 0; i < depth; ++i) in_frames += std::string(names[i]).find('(') == std::string::npos;
  std::fprintf(stderr, "terminated; %d frames without a module; %s\n", in_frames,
               last.find("__libc_start_main") != std::string::npos ? "reached main" : "lost the stack");
  _exit(3);
}

void throw_uncaught() { throw std::runtime_error("nobody catches"); }
void throw_and_catch_nothing() noexcept { throw_uncaught(); }

// clang lands in a function of its own, __clang_call_terminate, which calls std::terminate() and has no unwind
// information: no trace continues there.
#if defined(__clang__)
constexpr bool k_terminate_can_be_left = false;
#else
constexpr bool k_terminate_can_be_left = true;
#endif

/// Checks the process's last message when `body` runs below the frames.
void expect_terminated(void (*body)(), const char* message) {
  const Frames frames;
  EXPECT_EXIT(
      {
        std::set_terminate(report_trace);
        frames.run(body);
      },
      testing::ExitedWithCode(3), message);
}

TEST(UncaughtDeathTest, NoexceptBelowRegisteredCodeShowsTheWholeStack) {
  expect_terminated(throw_and_catch_nothing, k_terminate_can_be_left
                                                 ? "terminated; 6 frames without a module; reached main"
                                                 : "terminated; 0 frames without a module; lost the stack");
}

TEST(UncaughtDeathTest, TerminateShowsTheWholeStack) {
  expect_terminated(std::terminate, "terminated; 6 frames without a module; reached main");
}

/// The run-time library treats noexcept as a handler: the frames below are gone, and destructors have run.
TEST(UncaughtDeathTest, NoexceptAboveRegisteredCodeIsReached) {
  const Frames frames;
  const auto run = [&]() noexcept { frames.run(throw_uncaught); };
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          std::fprintf(stderr, "%d objects; ", Frames::alive);
          report_trace();
        });
        run();
      },
      testing::ExitedWithCode(3),
      k_terminate_can_be_left ? "^0 objects; terminated; 0 frames without a module; reached main"
                              : "^0 objects; terminated; 0 frames without a module; lost the stack");
}

/// No frame above catches: the search for a handler has passed all frames, and they still exist.
TEST(UncaughtDeathTest, WithoutAnyHandlerNothingIsUnwound) {
  const Frames frames;
  g_frames = &frames;
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          std::fprintf(stderr, "%d objects; ", Frames::alive);
          report_trace();
        });
        pthread_t thread;
        pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
              g_frames->run(throw_uncaught);
              return nullptr;
            },
            nullptr);
        pthread_join(thread, nullptr);
      },
      testing::ExitedWithCode(3), "^7 objects; terminated; 6 frames without a module");
}

// Several threads.

// covers: EX16 DY14
TEST(Threads, ThrowWhileOthersRegisterAndCancel) {
  const Frames frames;
  std::atomic<bool> stop{false};
  std::atomic<int> thrown{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        try {
          frames.run([] { throw 42; });
        } catch (const int value) {
          if (value == 42 && Frames::alive == 0) ++thrown;
        }
      }
    });
  }
  // One thread makes frames of its own, throws through each once, and drops them: always new code at old places.
  threads.emplace_back([&] {
    while (!stop) {
      const FrameOfKind mine(k_frame_kinds[static_cast<std::size_t>(thrown) % std::size(k_frame_kinds)]);
      try {
        mine([] { throw 7; });
      } catch (const int value) {
        if (value == 7) ++thrown;
      }
    }
  });
  for (int round = 0; round < 20; ++round) {
    const Crowd crowd(2000);
    std::this_thread::yield();
  }
  while (thrown < 2000) std::this_thread::yield();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Frames::alive, 0);
}

/// All threads meet the same procedures for the first time.
TEST(Threads, FirstThrowsAtOnce) {
  for (int round = 0; round < 50; ++round) {
    const Frames frames;
    std::atomic<int> ready{0}, caught{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        try {
          frames.run([] { throw 42; });
        } catch (int) {
          ++caught;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(caught, 4);
  }
}

// Signal handlers.

std::atomic<int> g_handled{0};
std::atomic<int> g_shortest{1000};
std::array<void*, 400> g_trace;

/// The first look at the procedures happens here, and every further one, wherever the thread is.
void take_trace(int) {
  const int depth = backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  if (depth < g_shortest) g_shortest = depth;
  ++g_handled;
}

TEST(SignalHandlers, SeeTheWholeStack) {
  const Frames frames;
  static int expected = 0;
  expected = backtrace(g_trace.data(), static_cast<int>(g_trace.size()));
  struct sigaction action {
  }, old{};
  action.sa_handler = take_trace;
  sigaction(SIGUSR1, &action, &old);
  g_handled = 0;
  g_shortest = 1000;
  frames.run([] { raise(SIGUSR1); });
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_EQ(g_handled, 1);
  EXPECT_GE(g_shortest, expected + 2 * static_cast<int>(frames.size()));
}

std::atomic<Addr> g_always{0}, g_sometimes{0};
std::atomic<int> g_wrong{0};

/// This is not a trace: libgcc cannot pass its own frames at every instruction.
void ask_for_functions(int) {
  const auto function = [](Addr begin) {
    return reinterpret_cast<Addr>(_Unwind_FindEnclosingFunction(reinterpret_cast<void*>(begin + 5)));
  };
  if (function(g_always) != g_always) ++g_wrong;
  const Addr sometimes = g_sometimes;
  const Addr found = function(sometimes);
  if (found != 0 && found != sometimes) ++g_wrong;
  ++g_handled;
}

/// Procedures are looked up while registering, cancelling and throwing are interrupted at any instruction.
TEST(SignalHandlers, MayInterruptEverything) {
  const FrameOfKind always(FrameKind::plain);
  g_always = g_sometimes = always.begin();
  g_handled = g_wrong = 0;
  struct sigaction action {
  }, old{};
  action.sa_handler = ask_for_functions;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, &old);
  std::atomic<bool> stop{false};
  const pthread_t self = pthread_self();
  std::thread sender([&] {
    while (!stop) {
      pthread_kill(self, SIGUSR1);
      usleep(20);
    }
  });
  int caught = 0;
  for (int i = 0; i < 2000 || g_handled < 200; ++i) {
    const FrameOfKind frame(k_frame_kinds[static_cast<std::size_t>(i) % std::size(k_frame_kinds)]);
    g_sometimes = frame.begin();
    try {
      frame([] { throw 42; });
    } catch (int) {
      ++caught;
    }
  }
  stop = true;
  sender.join();
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_GE(caught, 2000);
  EXPECT_EQ(g_wrong, 0);
}

}  // namespace
}  // namespace jitunwind::test
