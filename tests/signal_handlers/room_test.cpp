// Work that a handler on a small signal stack does elsewhere: its environment there, and the unchanged state
// afterwards.
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/allowed_calls.h"
#include "tests/support/painted_stack.h"

namespace jitunwind::test {
namespace {

using Place = std::uintptr_t;

[[gnu::noinline]] Place here() { return reinterpret_cast<Place>(__builtin_frame_address(0)); }

stack_t signal_stack() {
  stack_t now{};
  ::sigaltstack(nullptr, &now);
  return now;
}
std::uint64_t signal_mask() {
  std::uint64_t mask = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

thread_local std::function<void()>* in_handler = nullptr;
void on_signal(int) { (*in_handler)(); }

void have_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(number, &action, nullptr);
}

/// Sanitizers have their own signal stack, which is restored.
class SmallStack {
 public:
  explicit SmallStack(std::size_t size = 8192, int flags = 0) : stack_(PaintedStack::make(size)) {
    const stack_t stack{stack_.stack, flags, size};
    ::sigaltstack(&stack, &before_);
  }
  ~SmallStack() {
    ::sigaltstack(&before_, nullptr);
    ::munmap(stack_.begin - PaintedStack::k_page, PaintedStack::k_page + stack_.size);
  }
  SmallStack(const SmallStack&) = delete;
  SmallStack& operator=(const SmallStack&) = delete;
  bool holds(Place at) const { return at - reinterpret_cast<Place>(stack_.stack) < stack_.size; }

 private:
  PaintedStack stack_;
  stack_t before_{};
};

void on_small_stack(std::function<void()> work) {
  const SmallStack stack;
  have_handler(SIGUSR1, &on_signal);
  in_handler = &work;
  ::raise(SIGUSR1);
}

[[gnu::noinline]] void use(std::size_t size) {
  volatile char* const room = static_cast<char*>(__builtin_alloca(size));
  for (std::size_t i = 0; i < size; i += 512) room[i] = 1;
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

TEST(Room, IsWhereTheWorkIsOnTheThreadsOwnStack) {
  const Place outside = here();
  const Place inside = with_room([] { return here(); });
  EXPECT_LT(outside - inside, 4096u);
}

TEST(Room, IsWhereTheWorkIsOnALargeSignalStack) {
  const SmallStack stack(256 << 10);
  have_handler(SIGUSR1, &on_signal);
  Place inside = 0;
  std::function<void()> work = [&] { inside = with_room([] { return here(); }); };
  in_handler = &work;
  ::raise(SIGUSR1);
  EXPECT_TRUE(stack.holds(inside));
}

constexpr int k_autodisarm = static_cast<int>(1u << 31);  // <linux/signal.h>, which excludes <signal.h>

/// Does the work of a handler on such a stack, and returns whether it was done on that stack.
bool stays_on_disarmed_stack(std::size_t size) {
  const SmallStack stack(size, k_autodisarm);
  have_handler(SIGUSR1, &on_signal);
  Place inside = 0;
  std::function<void()> work = [&] {
    EXPECT_TRUE(stack.holds(here()));
    EXPECT_EQ(signal_stack().ss_flags & SS_ONSTACK, 0) << "the kernel tells of it";
    inside = with_room([] { return here(); });
  };
  in_handler = &work;
  ::raise(SIGUSR1);
  EXPECT_NE(inside, 0u);
  EXPECT_EQ(signal_stack().ss_flags, k_autodisarm) << "it is not there again";
  return stack.holds(inside);
}

TEST(Room, IsElsewhereOnASmallStackThatIsDisarmed) {
  EXPECT_FALSE(stays_on_disarmed_stack(8192));
  EXPECT_FALSE(stays_on_disarmed_stack(k_room));
}

TEST(Room, IsWhereTheWorkIsOnALargeStackThatIsDisarmed) { EXPECT_TRUE(stays_on_disarmed_stack(256 << 10)); }

/// This memory was asked about a moment ago, when it was not the signal stack yet.
TEST(Room, IsElsewhereOnAnArrayInTheThreadsOwnStack) {
  const int walk = 0, another = 0;
  (void)with_room(&walk, [] { return 0; });
  alignas(16) std::array<std::byte, 8192> array;
  const stack_t stack{array.data(), 0, array.size()};
  stack_t before{};
  ASSERT_EQ(::sigaltstack(&stack, &before), 0);
  have_handler(SIGUSR1, &on_signal);
  Place inside = reinterpret_cast<Place>(array.data());
  std::function<void()> work = [&] { inside = with_room(&another, [] { return here(); }); };
  in_handler = &work;
  ::raise(SIGUSR1);
  ::sigaltstack(&before, nullptr);
  EXPECT_GE(inside - reinterpret_cast<Place>(array.data()), array.size());
}

/// Whether a walk that begins at `sp` in a handler on this stack has its work elsewhere.
bool is_elsewhere(std::span<std::byte> memory, const int& walk, Place sp) {
  const stack_t stack{memory.data(), 0, memory.size()};
  stack_t before{};
  EXPECT_EQ(::sigaltstack(&stack, &before), 0);
  have_handler(SIGUSR1, &on_signal);
  Place inside = reinterpret_cast<Place>(memory.data());
  std::function<void()> work = [&] {
    begin_walk_with_room(&walk, sp);
    inside = with_room(&walk, [] { return here(); });
  };
  in_handler = &work;
  ::raise(SIGUSR1);
  ::sigaltstack(&before, nullptr);
  return inside - reinterpret_cast<Place>(memory.data()) >= memory.size();
}

/// The walk before had the same address, and began elsewhere on the same stack.
TEST(Room, IsElsewhereForAWalkThatBeginsOnAnArrayInTheThreadsOwnStack) {
  const int walk = 0;
  alignas(16) std::array<std::byte, 8192> array;
  begin_walk_with_room(&walk, here());
  (void)with_room(&walk, [] { return 0; });
  EXPECT_TRUE(is_elsewhere(array, walk, reinterpret_cast<Place>(array.data()) + array.size() / 2));
}

/// The walk before had the same address and SP, on a stack that is no thread's own, and is a signal stack now.
TEST(Room, IsElsewhereForAWalkWhereAnotherStackWas) {
  alignas(16) static std::array<std::byte, std::size_t{16} << 10> memory;
  static const int walk = 0;
  static const Place sp = reinterpret_cast<Place>(memory.data()) + memory.size() / 2;
  static ucontext_t back, fiber;
  ASSERT_EQ(::getcontext(&fiber), 0);
  fiber.uc_stack.ss_sp = memory.data();
  fiber.uc_stack.ss_size = memory.size();
  fiber.uc_link = &back;
  ::makecontext(
      &fiber,
      [] {
        begin_walk_with_room(&walk, sp);
        (void)with_room(&walk, [] { return 0; });
      },
      0);
  ASSERT_EQ(::swapcontext(&back, &fiber), 0);
  EXPECT_TRUE(is_elsewhere(memory, walk, sp));
}

#ifndef JITUNWIND_TEST_SANITIZED  // AddressSanitizer ends the process where it cannot ask that either
/// A sandbox refuses the question which stack the code is on.
TEST(Room, IsWhatThereIsWhereNothingCanBeAsked) {
  const pid_t child = ::fork();
  if (child == 0) {
    const PaintedStack painted = PaintedStack::make(k_room / 2);
    painted.use();
    have_handler(SIGUSR1, &on_signal);
    std::function<void()> work = [&] {
      if (!refuse({SYS_sigaltstack}, EPERM)) ::_exit(8);
      const Place inside = with_room([] { return here(); });
      ::_exit(inside - reinterpret_cast<Place>(painted.stack) < painted.size ? 0 : 1);
    };
    in_handler = &work;
    ::raise(SIGUSR1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
#endif

TEST(Room, IsElsewhereOnASmallOneAndAllIsAsItWas) {
  on_small_stack([] {
    const stack_t before = signal_stack();
    const std::uint64_t mask = signal_mask();
    errno = 77;
    const std::size_t answer = with_room([&] {
      EXPECT_GT(here() - reinterpret_cast<Place>(before.ss_sp), before.ss_size);
      use(k_room);
      EXPECT_EQ(with_room([] { return use(k_room / 2), 5; }), 5);
      return std::size_t{3};
    });
    EXPECT_EQ(errno, 77);
    EXPECT_EQ(answer, 3u);
    EXPECT_EQ(signal_mask(), mask);
    const stack_t after = signal_stack();
    EXPECT_EQ(after.ss_sp, before.ss_sp);
    EXPECT_EQ(after.ss_size, before.ss_size);
    EXPECT_EQ(after.ss_flags, before.ss_flags);
  });
}

std::atomic<int> others{0};
TEST(Room, SignalsOfOthersWait) {
  others = 0;
  have_handler(SIGUSR2, [](int) { ++others; });
  on_small_stack([] {
    with_room([] {
      ::pthread_kill(::pthread_self(), SIGUSR2);
      EXPECT_EQ(others, 0);
    });
    EXPECT_EQ(others, 1);
  });
}

void skip_fault(int, siginfo_t*, void* context) {
  use(4096);
  EXPECT_EQ(with_room([] { return use(k_room / 2), 1; }), 1);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // behind ud2
}
void have_fault_handler() {
  struct sigaction action {};
  action.sa_sigaction = &skip_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGILL, &action, nullptr);
}

/// A handler that begins at the upper end of the thread's signal stack would overwrite the first one's frame.
TEST(Room, HandlersOfItsOwnFaultsSpareTheSignalStack) {
  have_fault_handler();
  on_small_stack([] {
    volatile unsigned char kept[1024];
    for (std::size_t i = 0; i < sizeof kept; ++i) kept[i] = static_cast<unsigned char>(i * 7);
    with_room([] { asm volatile("ud2" ::: "memory"); });
    for (std::size_t i = 0; i < sizeof kept; ++i) ASSERT_EQ(kept[i], static_cast<unsigned char>(i * 7));
  });
  ::signal(SIGILL, SIG_DFL);
}

sigjmp_buf behind;
void jump_out_of_work() {
  if (sigsetjmp(behind, 1) == 0) on_small_stack([] { with_room([] { asm volatile("ud2" ::: "memory"); }); });
}
TEST(Room, IsThereAfterAHandlerHasJumpedOutOfTheWork) {
  ::signal(SIGILL, [](int) { ::siglongjmp(behind, 1); });
  for (int time = 0; time < 3; ++time) {
    jump_out_of_work();
    on_small_stack([] { EXPECT_EQ(with_room([] { return use(k_room), 2; }), 2); });
  }
  ::signal(SIGILL, SIG_DFL);
}

/// All threads are in it at once, and there are no more stacks.
TEST(Room, EachThreadHasItsOwn) {
  constexpr std::size_t k_threads = 40;
  std::size_t after_first = 0;
  for (int time = 0; time < 3; ++time) {
    std::barrier all(k_threads);
    std::vector<std::thread> threads;
    std::atomic<std::size_t> wrong{0};
    std::atomic<std::size_t> most{0};
    for (std::size_t i = 0; i < k_threads; ++i)
      threads.emplace_back([&, i] {
        on_small_stack([&] {
          with_room([&] {
            constexpr std::size_t k_mine = 2048;
            volatile std::size_t mine[k_mine];
            for (std::size_t k = 0; k < k_mine; ++k) mine[k] = i;
            all.arrive_and_wait();
            for (std::size_t k = 0; k < k_mine; ++k) wrong += mine[k] != i;
            if (i == 0) most = mappings();
            all.arrive_and_wait();
          });
        });
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    if (time == 0) after_first = most;
    // Stacks of threads and heaps come and go.
    EXPECT_LT(most, after_first + k_threads);
  }
}

/// A room that another thread used is free in a child, which does not have that thread.
TEST(Room, ForkGivesBackWhatOthersWereOn) {
  std::barrier in(2), out(2);
  Place of_other = 0;
  std::thread other([&] {
    on_small_stack([&] {
      with_room([&] {
        of_other = here();
        in.arrive_and_wait();
        out.arrive_and_wait();
      });
    });
  });
  in.arrive_and_wait();
  const pid_t child = ::fork();
  if (child == 0) {
    Place of_child = 0;
    // Other free ones may come first in the list.
    bool is_the_same = false;
    std::function<void(int)> nest = [&](int depth) {
      on_small_stack([&, depth] {
        with_room([&, depth] {
          of_child = here();
          is_the_same = is_the_same || of_child - of_other + 65536 < 131072;
          if (depth > 0 && !is_the_same) {
            std::thread next([&, depth] { nest(depth - 1); });
            next.join();
          }
        });
      });
    };
    nest(60);
    ::_exit(is_the_same ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  out.arrive_and_wait();
  other.join();
}

}  // namespace
}  // namespace jitunwind::test
