// The library's own threads, and words by which they wait for others.
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
  /// Returns the former value, and wakes waiters.
  std::uint32_t exchange(std::uint32_t value) noexcept;
  /// False: the value was not `before`, and does not change. No waiter is woken.
  bool replace(std::uint32_t before, std::uint32_t value) noexcept {
    return word_.compare_exchange_strong(before, value, std::memory_order_acq_rel);
  }
  /// Returns when the value is another one, or when CLOCK_MONOTONIC has reached `until`, unless that is null.
  void wait_while(std::uint32_t value, const timespec* until = nullptr) const noexcept;

 private:
  std::atomic<std::uint32_t> word_{0};
};

/// The time of CLOCK_MONOTONIC after so many nanoseconds.
timespec monotonic_time_in(std::int64_t nanoseconds) noexcept;

/// A thread that handles none of the program's signals. Used by one thread at a time.
class OwnThread {
 public:
  /// False: the system makes no more threads. Precondition: the former thread has been joined.
  bool start(void (*run)(void*) noexcept, void* of) noexcept;
  /// Returns when the kernel, too, has finished with the thread: it has then released all that the thread traced.
  /// Returns at once if no thread was started, and in a child of fork(), which does not have it.
  void join() noexcept;

 private:
  static void* begin(void* self) noexcept;

  pthread_t thread_{};
  pid_t process_ = 0;  // the process that has the thread
  pid_t id_ = 0;
  void (*run_)(void*) noexcept = nullptr;
  void* of_ = nullptr;
};

}  // namespace jitunwind
