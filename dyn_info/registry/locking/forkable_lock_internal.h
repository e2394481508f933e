// A mutex that is whole in a forked child, wherever the fork comes from: POSIX lets signal handlers fork, also one that
// interrupted who has the lock.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace jitunwind {

/// Who has it is known by the very store that takes it: so a fork handler never waits for its own thread.
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

  // For handlers of pthread_atfork(). In a child whose parent's handler interrupted the owner the lock stays taken
  // until the owner, which is the child's only thread, gives it back.

  void before_fork() noexcept {
    if (!try_before_fork()) lock();
  }
  /// False: another thread has it.
  bool try_before_fork() noexcept {
    if ((owner_.load(std::memory_order_relaxed) & ~k_waited_for) != self()) return try_lock();
    ++again_;
    return true;
  }
  /// In the parent and in the child.
  void after_fork() noexcept {
    if (again_ == 0) return unlock();
    --again_;
  }
  /// In a child: whoever has it is not there.
  void forget_owner() noexcept { owner_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::uintptr_t k_waited_for = 1;

  /// An even number that no other living thread has, and a child's thread has from its parent's.
  static std::uintptr_t self() noexcept { return static_cast<std::uintptr_t>(::pthread_self()); }
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uintptr_t> owner_{0};
  unsigned again_ = 0;  // forks under way whose handlers found it theirs
};

/// Calls the handlers above in every fork from now on. Handlers before a fork run in the reverse order of these calls.
template <ForkableLock& lock>
void keep_whole_in_forks() noexcept {
  constexpr auto after = [] { lock.after_fork(); };
  (void)::pthread_atfork([] { lock.before_fork(); }, after, after);
}

}  // namespace jitunwind
