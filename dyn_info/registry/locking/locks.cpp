#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>

#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {
namespace {

// The kernel compares 32 bits. Two owners may have the same ones; a thread that sleeps then is woken by either.
static_assert(std::endian::native == std::endian::little);

long futex(std::atomic<std::uintptr_t>& word, int operation, std::uintptr_t value) noexcept {
  return ::syscall(SYS_futex, &word, operation, static_cast<std::uint32_t>(value), nullptr, nullptr, 0);
}

}  // namespace

/// A thread that has waited marks the lock as waited for when it takes it, since there may be others (Drepper, "Futexes
/// are tricky", section "Mutex, take 2").
void ForkableLock::wait() noexcept {
  const ErrnoKeeper keep_errno;
  for (std::uintptr_t seen = owner_.load(std::memory_order_relaxed);;) {
    if (seen == 0) {
      if (owner_.compare_exchange_weak(seen, self() | k_waited_for, std::memory_order_acquire)) return;
    } else if ((seen & k_waited_for) != 0 || owner_.compare_exchange_weak(seen, seen | k_waited_for)) {
      (void)futex(owner_, FUTEX_WAIT_PRIVATE, seen | k_waited_for);
      seen = owner_.load(std::memory_order_relaxed);
    }
  }
}

void ForkableLock::wake() noexcept {
  const ErrnoKeeper keep_errno;
  (void)futex(owner_, FUTEX_WAKE_PRIVATE, 1);
}

/// A thread that has waited marks this lock, too.
void WriterLock::wait() noexcept {
  const ErrnoKeeper keep_errno;
  for (;;) {
    const std::uint32_t old = state_.fetch_or(k_taken | k_waited_for, std::memory_order_seq_cst);
    if ((old & k_taken) == 0) break;
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, old | k_waited_for, nullptr, nullptr, 0);
  }
}

void WriterLock::wake() noexcept {
  const ErrnoKeeper keep_errno;
  state_.fetch_and(~k_waited_for, std::memory_order_seq_cst);
  syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace jitunwind
