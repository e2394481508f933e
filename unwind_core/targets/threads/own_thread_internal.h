// Threads of the library's own, and words by which they wait for others.
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace jitunwind {

/// A word that threads wait for: futex(2).
class WaitedWord {
 public:
  std::uint32_t load() const noexcept { return word_.load(std::memory_order_acquire); }
  /// Returns what it was. Who waits is woken.
  std::uint32_t exchange(std::uint32_t value) noexcept;
  /// False: it was not `before`, and stays as it is. Nobody is woken.
  bool replace(std::uint32_t before, std::uint32_t value) noexcept {
    return word_.compare_exchange_strong(before, value, std::memory_order_acq_rel);
  }
  /// Returns when it is another one, or when CLOCK_MONOTONIC says `until`, if that is not null.
  void wait_while(std::uint32_t value, const timespec* until = nullptr) const noexcept;

 private:
  std::atomic<std::uint32_t> word_{0};
};

/// What CLOCK_MONOTONIC says in so many nanoseconds.
timespec monotonic_time_in(std::int64_t nanoseconds) noexcept;

/// A thread on which no signal of the program's is handled. Used by one thread at a time.
class OwnThread {
 public:
  /// False: the system makes no more threads. The one before has been joined.
  bool start(void (*run)(void*) noexcept, void* of) noexcept;
  /// Returns when the kernel, too, has done with the thread: then it has let go of what that traced. Of a thread that
  /// was not started, or in a child of fork(), which does not have it, there is nothing to wait for.
  void join() noexcept;

 private:
  static void* begin(void* self) noexcept;

  pthread_t thread_{};
  pid_t process_ = 0;  // has the thread
  pid_t id_ = 0;
  void (*run_)(void*) noexcept = nullptr;
  void* of_ = nullptr;
};

}  // namespace jitunwind
