// Descriptors without any guarantee: any memory that can be read. The registry knows which of it is registered, and
// with which Behind.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Whether `di` is registered now, with `behind`. A lookup of a few loads. Signal-safe.
bool is_registered(const unw_dyn_info_t* di, Behind behind) noexcept;

/// cancel_procedure() for descriptors that were registered with `behind`. All others count as not registered.
Status cancel_procedure(unw_dyn_info_t* di, Behind behind) noexcept;

/// Prefetches the memory that register or cancel looks at first: the descriptor and, where the descriptor's address
/// tells it (docs/registry.md "Which node"), its node. It reads nothing of the descriptor, which may be any address.
/// Signal-safe.
void prefetch_changing(const unw_dyn_info_t* di) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
