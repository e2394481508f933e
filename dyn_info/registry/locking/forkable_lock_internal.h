// A mutex that is whole in a forked child, wherever the fork comes from: POSIX lets signal handlers fork, even one that
// interrupted the owner of the lock.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace jitunwind {

/// The store that takes the lock also names the owner, so a fork handler never waits for its own thread.
class [[gnu::visibility("default")]] ForkableLock {
 public:
  constexpr ForkableLock() noexcept = default;

  bool try_lock() noexcept {
    std::uintptr_t free = 0;
    return owner_.compare_exchange_strong(free, self(), std::memory_order_acquire, std::memory_order_relaxed);
  }
  void lock() noexcept {
    if (!try_lock()) wait();
  }
  void unlock() noexcept {
    if ((owner_.exchange(0, std::memory_order_release) & k_waited_for) != 0) wake();
  }

  // Handlers of pthread_atfork() call these. If a signal handler that interrupted the owner forks, the lock stays taken
  // in the child until the owner, which is the child's only thread, releases it.

  void before_fork() noexcept {
    if (!try_before_fork()) lock();
  }
  /// Returns false if another thread has it.
  bool try_before_fork() noexcept {
    if ((owner_.load(std::memory_order_relaxed) & ~k_waited_for) != self()) return try_lock();
    ++again_;
    return true;
  }
  /// The parent and the child call it.
  void after_fork() noexcept {
    if (again_ == 0) return unlock();
    --again_;
  }
  /// A child calls it if the owner is a thread that the child lacks.
  void forget_owner() noexcept { owner_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uintptr_t k_waited_for = 1;

  /// Returns an even number that no other living thread has. A child's thread has that of the parent's thread that
  /// forked.
  static std::uintptr_t self() noexcept { return static_cast<std::uintptr_t>(::pthread_self()); }
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uintptr_t> owner_{0};
  unsigned again_ = 0;  // forks under way whose handlers found the lock theirs
};

/// Calls the handlers above in every fork from now on. Handlers before a fork run in the reverse order of these calls.
template <ForkableLock& lock>
void keep_whole_in_forks() noexcept {
  constexpr auto after = [] { lock.after_fork(); };
  (void)::pthread_atfork([] { lock.before_fork(); }, after, after);
}

// The lock among writers. It is not a pthread mutex, since it must be plain data after fork and in a process that
// exits, and since it counts the threads that do without it.

/// The state is one word. Bit 0 says that the lock is taken, and bit 1 that somebody waits for it. The rest is the
/// number of bypasses, threads that go on while another has the lock. Since both are one word, a thread that releases
/// the lock either sees a bypass or is seen by it.
class alignas(64) WriterLock {
 public:
  constexpr WriterLock() noexcept = default;

  bool try_lock() noexcept { return (state_.fetch_or(k_taken, std::memory_order_seq_cst) & k_taken) == 0; }
  void lock() noexcept {
    if (!try_lock()) wait();
  }
  /// Returns true if there is a bypass. It orders what was done before it against what the caller looks at next.
  bool unlock() noexcept {
    const std::uint32_t old = state_.fetch_sub(k_taken, std::memory_order_seq_cst);
    if ((old & k_waited_for) != 0) wake();
    return old >= k_bypass;
  }

  void begin_bypass() noexcept { state_.fetch_add(k_bypass, std::memory_order_seq_cst); }
  void end_bypass() noexcept { state_.fetch_sub(k_bypass, std::memory_order_seq_cst); }
  /// Only the holder calls it. It orders memory as unlock() does.
  bool has_bypass() noexcept { return state_.fetch_add(0, std::memory_order_seq_cst) >= k_bypass; }
  /// The holder calls it when no other thread exists.
  void forget_others() noexcept { state_.store(k_taken, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t k_taken = 1;
  static constexpr std::uint32_t k_waited_for = 2;
  static constexpr std::uint32_t k_bypass = 4;

  [[gnu::visibility("default")]] void wait() noexcept;
  [[gnu::visibility("default")]] void wake() noexcept;

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace jitunwind
