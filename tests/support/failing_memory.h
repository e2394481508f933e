// Makes malloc, its relatives, and mmap fail at random, for a thread that asks for it. Nothing fails under sanitizers,
// which have functions of their own. Link failing_memory.cpp.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <thread>

namespace jitunwind::test {

/// Makes about one in `one_in` of this thread's requests fail as long as it lives; 0: none. Objects may be nested.
class FailingMemory {
 public:
  explicit FailingMemory(unsigned one_in) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

 private:
  unsigned before_;
};

/// Counts the failed requests of the whole process.
std::size_t failed_requests() noexcept;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_is_sanitized = true;
#else
inline constexpr bool k_is_sanitized = false;
#endif

/// Keeps forks apart from threads that allocate, with sanitizers alone: gcc 12's AddressSanitizer holds no lock of its
/// allocator at fork(), so that a child waits for ever for one that another thread had. The C library does hold them.
class AllocatingThreads {
 public:
  explicit AllocatingThreads(int threads) : begun_(threads) {}

  /// Does `work`, which allocates, until `stop`. A thread does nothing else, as its start allocates, too.
  template <typename Work>
  void run_until(const std::atomic<bool>& stop, Work work) {
    begun_.count_down();
    while (!stop) {
      for (++at_work_; k_is_sanitized && forks_; ++at_work_) {
        --at_work_;
        while (forks_) std::this_thread::yield();
      }
      work();
      --at_work_;
    }
  }
  /// fork() when all threads have begun, and between two runs of each.
  pid_t fork() {
    begun_.wait();
    forks_ = true;
    while (k_is_sanitized && at_work_ != 0) std::this_thread::yield();
    const pid_t child = ::fork();
    forks_ = false;
    return child;
  }

 private:
  std::latch begun_;
  std::atomic<int> at_work_{0};
  std::atomic<bool> forks_{false};
};

}  // namespace jitunwind::test
