// Prefetches memory of the registry that a change will wait for, while the caller still waits for other memory.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Prefetches the memory that register or cancel looks at first: the descriptor and, where the descriptor's address
/// tells it (docs/registry.md "Which node"), its node. It reads nothing of the descriptor, which may be any address.
/// Signal-safe.
void prefetch_changing(const unw_dyn_info_t* di) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
