// Another thread of this process answers with its own stack, whatever it does. If it does not, the reason is reported.
#include "jitunwind/sdk/walk_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

using Answer = ThreadWalk::Answer;

pid_t own_thread() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

struct OwnFrame {
  Addr pc = 0;
  Addr sp = 0;
  RowOrigin origin = RowOrigin::none;
  std::string name{};
  friend bool operator==(const OwnFrame&, const OwnFrame&) = default;
  friend void PrintTo(const OwnFrame& frame, std::ostream* out) {
    *out << std::hex << frame.pc << " " << frame.sp << std::dec << " " << origin_name(frame.origin) << " "
         << frame.name;
  }
};

/// A thread that stands in a JIT frame and has reported the frames that it sees from there on.
class Standing {
 public:
  explicit Standing(bool spins = false) : spins_(spins), thread_([this] { frame_(stand, this); }) { said_.acquire(); }
  ~Standing() {
    goes_on_ = true;
    thread_.join();
  }
  pid_t id() const { return id_; }
  const std::vector<OwnFrame>& frames() const { return frames_; }
  std::thread& thread() { return thread_; }

 private:
  [[gnu::noinline]] static void* stand(void* standing) {
    auto& self = *static_cast<Standing*>(standing);
    self.id_ = own_thread();
    Walk walk = walk_here();
    for (const Frame& frame : walk)
      if (frame.depth() != 0) self.frames_.push_back({frame.pc(), frame.sp(), frame.origin(), frame.name()});
    self.said_.release();
    while (!self.goes_on_)
      if (!self.spins_) ::usleep(1000);
    return nullptr;
  }

  bool spins_;
  std::atomic<bool> goes_on_{false};
  std::binary_semaphore said_{0};
  pid_t id_ = 0;
  std::vector<OwnFrame> frames_;
  JitFrame frame_;
  std::thread thread_;
};

/// Expects the walk to end with the frames that the thread has seen itself.
void expect_ends_with(const ThreadWalk& walk, const std::vector<OwnFrame>& frames) {
  ASSERT_EQ(walk.answer(), Answer::given) << walk.why();
  EXPECT_EQ(walk.why(), "complete");
  ASSERT_GT(walk.size(), frames.size());
  std::vector<OwnFrame> last;
  for (const ThreadFrame* frame = walk.end() - frames.size(); frame != walk.end(); ++frame)
    last.push_back({frame->pc(), frame->sp(), frame->origin(), frame->name()});
  EXPECT_EQ(last, frames);
}

// covers: HL14
TEST(WalkThread, ShowsWhatTheThreadSeesItself) {
  for (const bool spins : {false, true}) {
    const Standing standing(spins);
    EXPECT_EQ(standing.frames().at(0).name, "jit_frame");
    for (int i = 0; i < 100; ++i) expect_ends_with(walk_thread(standing.id()), standing.frames());
  }
}

// covers: HL14
TEST(WalkThread, ManyAskManyAtATime) {
  std::vector<std::unique_ptr<Standing>> standing;
  for (int i = 0; i < 4; ++i) standing.push_back(std::make_unique<Standing>());
  std::vector<std::thread> asking;
  for (int i = 0; i < 8; ++i)
    asking.emplace_back([&, i] {
      const Standing& asked = *standing[static_cast<std::size_t>(i) % 4];
      for (int n = 0; n < 200; ++n) expect_ends_with(walk_thread(asked.id(), std::chrono::seconds(20)), asked.frames());
    });
  for (std::thread& thread : asking) thread.join();
}

TEST(WalkThread, AsksItself) {
  const ThreadWalk walk = walk_thread(own_thread());
  ASSERT_EQ(walk.answer(), Answer::given) << walk.why();
  bool has_main = false;
  for (const ThreadFrame& frame : walk) has_main = has_main || frame.name() == "main";
  EXPECT_TRUE(has_main);
}

// covers: HL14
TEST(WalkThread, ThatIsNotThere) {
  pid_t gone = 0;
  std::thread([&] { gone = own_thread(); }).join();
  for (const pid_t thread : {gone, pid_t{0}, pid_t{-1}, pid_t{1}}) {
    const ThreadWalk walk = walk_thread(thread);
    EXPECT_EQ(walk.answer(), Answer::no_thread);
    EXPECT_EQ(walk.size(), 0u);
    EXPECT_EQ(walk.why(), "this process has no such thread");
  }
}

/// A thread that is ending still has a number, but takes no signal and is not worth waiting for.
// covers: HL14
TEST(WalkThread, ThatIsEnding) {
  std::atomic<pid_t> ending{0};
  std::atomic<bool> is_over{false};
  std::thread ends([&] {
    while (!is_over) std::thread([&] { ending = own_thread(); }).join();
  });
  for (int i = 0; i < 300; ++i) {
    pid_t thread;
    while ((thread = ending.exchange(0)) == 0) std::this_thread::yield();
    const ThreadWalk walk = walk_thread(thread, std::chrono::hours(1));
    EXPECT_TRUE(walk.answer() == Answer::given || walk.answer() == Answer::no_thread) << walk.why();
  }
  is_over = true;
  ends.join();
}

// covers: HL14
TEST(WalkThread, ThatBlocksSignals) {
  std::binary_semaphore blocked{0}, goes_on{0}, unblocked{0}, ends{0};
  pid_t id = 0;
  std::thread thread([&] {
    id = own_thread();
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    blocked.release();
    goes_on.acquire();
    // The pending questions are answered now, when nobody waits for them.
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    unblocked.release();
    ends.acquire();
  });
  blocked.acquire();
  for (int i = 0; i < 40; ++i) {
    const ThreadWalk walk = walk_thread(id, std::chrono::milliseconds(5));
    ASSERT_EQ(walk.answer(), Answer::blocked) << walk.why();
  }
  goes_on.release();
  unblocked.acquire();
  EXPECT_EQ(walk_thread(id, std::chrono::seconds(20)).answer(), Answer::given);
  ends.release();
  thread.join();
}

// covers: HL14
TEST(WalkThread, WaitsNoLongerThanItIsTold) {
  const pid_t child = ::fork();
  if (child == 0) {
    // This runs in its own process, in which a vfork() that does not return stops one thread, much as ptrace does.
    std::atomic<pid_t> id{0};
    std::thread([&] {
      id = own_thread();
      if (::vfork() == 0) {
        ::usleep(3'000'000);
        ::_exit(0);
      }
    }).detach();
    while (id == 0) ::usleep(1000);
    ::usleep(100'000);
    timespec before, after;
    ::clock_gettime(CLOCK_MONOTONIC, &before);
    const ThreadWalk walk = walk_thread(id, std::chrono::milliseconds(100));
    ::clock_gettime(CLOCK_MONOTONIC, &after);
    const double seconds =
        static_cast<double>(after.tv_sec - before.tv_sec) + static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
    ::_exit(walk.answer() == Answer::none && seconds >= 0.1 && seconds < 2.5 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

/// The handler interrupts any code, including malloc.
// covers: HL14
TEST(WalkThread, InASignalHandler) {
  static pid_t asked = 0;
  static std::atomic<int> given{0}, others{0};
  const Standing standing;
  asked = standing.id();
  struct sigaction action {};
  action.sa_handler = [](int) {
    ++(walk_thread(asked, std::chrono::seconds(20)).answer() == Answer::given ? given : others);
  };
  ::sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> ends{false};
  std::thread busy([&] {
    while (!ends) std::make_unique<std::vector<int>>(100);
  });
  for (int i = 0; i < 200; ++i) {
    ::pthread_kill(busy.native_handle(), SIGUSR1);
    ::usleep(200);
  }
  ends = true;
  busy.join();
  EXPECT_GT(given, 0);
  EXPECT_EQ(others, 0);
}

/// The library leaves its own signal to a program that takes it, and finds another one.
// covers: HL14
TEST(WalkThread, FindsAnotherSignalWhenItsOwnIsTaken) {
  ASSERT_EQ(walk_thread(own_thread()).answer(), Answer::given);
  int taken = 0;
  for (int signal = SIGRTMIN; signal <= SIGRTMAX && taken == 0; ++signal) {
    struct sigaction action;
    ::sigaction(signal, nullptr, &action);
    if ((action.sa_flags & SA_SIGINFO) != 0) taken = signal;
  }
  ASSERT_NE(taken, 0);
  struct sigaction theirs {};
  theirs.sa_handler = [](int) {};
  ::sigaction(taken, &theirs, nullptr);
  const Standing standing;
  expect_ends_with(walk_thread(standing.id()), standing.frames());
  struct sigaction now;
  ::sigaction(taken, nullptr, &now);
  EXPECT_EQ(now.sa_handler, theirs.sa_handler);
}

}  // namespace
}  // namespace jitunwind::test
