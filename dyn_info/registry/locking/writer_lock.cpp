#include "jitunwind/dyn_info/registry/locking/writer_lock_internal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {

// Drepper, "Futexes are tricky", section "Mutex, take 2": a thread that has waited marks the lock as waited for when it
// takes it, since there may be others.
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
