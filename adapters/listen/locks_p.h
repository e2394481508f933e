// Locks that are whole in a forked child.
#pragma once

#include <pthread.h>

namespace jitunwind {

class ListenLock {
 public:
  constexpr ListenLock() noexcept = default;
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// What was told by whom. Held for the few instructions of the table, never while anything is registered or cancelled:
/// what that tells others may come back here.
extern constinit ListenLock told_lock;
/// Names. Held while procedures are registered and cancelled. A fork has to take it before the registry's locks, so the
/// registry's own fork handlers have to be there first (handlers before a fork are called in the reverse order).
extern constinit ListenLock names_lock;
void keep_names_whole_in_forks() noexcept;

}  // namespace jitunwind
