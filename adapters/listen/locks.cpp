
#include <atomic>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

constinit ForkableLock told_lock;
constinit ForkableLock names_lock;

namespace {

constinit thread_local bool names_are_lost = false;  // for the child of the fork in progress

/// The holder of the names may wait for this thread, if that is in an observer, or in a signal handler that interrupted
/// the registry. The lock is then only tried, for a limited time.
void take_names() noexcept {
  if (!is_writing()) return names_lock.before_fork();
  const ErrnoKeeper keep_errno;
  int patience = 1000;
  while (!names_lock.try_before_fork() && --patience != 0) sleep_for_nanoseconds(100'000);
  names_are_lost = patience == 0;
}

void give_names_back() noexcept {
  if (!names_are_lost) names_lock.after_fork();
  names_are_lost = false;
}

void give_names_back_in_child() noexcept {
  if (names_are_lost) {
    forget_names_in_child();
    forget_itt_methods_in_child();
    names_lock.forget_owner();
  }
  give_names_back();
}

[[gnu::constructor(101)]] void keep_told_whole_in_forks() {
  const auto in_child = [] {
    forget_nothing_in_child();
    told_lock.after_fork();
  };
  (void)pthread_atfork([] { told_lock.before_fork(); }, [] { told_lock.after_fork(); }, in_child);
}

}  // namespace

void keep_names_whole_in_forks() noexcept {
  constinit static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  (void)register_procedures({});  // installs the registry's handlers
  (void)pthread_atfork(take_names, give_names_back, give_names_back_in_child);
}

}  // namespace jitunwind
