// Threads share what these locks guard, and a forked child finds it whole.
#pragma once

#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"

namespace jitunwind {

/// What was told by whom. Held for the few instructions of the table, never while anything is registered or cancelled:
/// what that tells others may come back here.
extern constinit ForkableLock told_lock;
/// Names, and engines' numbers of them. Held while procedures are registered and cancelled. A fork has to take it
/// before the registry's locks, so the registry's own fork handlers have to be there first (handlers before a fork are
/// called in the reverse order).
extern constinit ForkableLock names_lock;
/// To be called before somebody changes what that lock guards.
void keep_names_whole_in_forks() noexcept;

}  // namespace jitunwind
