// Locks of data that threads share, which a forked child finds in a consistent state.
#pragma once

#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"

namespace jitunwind {

/// Guards the table of announced calls. Held for the few instructions of the table, never while a procedure is
/// registered or cancelled: observers of that may call back here.
extern constinit ForkableLock told_lock;
/// Guards names, and the engines' numbers for them. Held while procedures are registered and cancelled. A fork has to
/// take it before the registry's locks. The registry's own fork handlers are therefore installed first: handlers before
/// a fork are called in the reverse order.
extern constinit ForkableLock names_lock;
/// Callers call it before they change the data of that lock.
void keep_names_whole_in_forks() noexcept;

}  // namespace jitunwind
