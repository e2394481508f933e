// The functions between the registry and the layers above it, beside those of registry.h.
#pragma once

#include <atomic>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

namespace jitunwind {

// The seam to the layer that makes procedures known to the unwinder of the C++ run-time. Its functions are declared
// here and defined on one of the two sides; every assembled library has both. The registry's call also makes a linker
// take the other side's definitions out of an archive.

/// The registry calls it before every registration, the first included, and outside its lock. Not signal-safe.
void attach_system_unwinder() noexcept;

/// Returns whether call frame information beside that of registered procedures gives a personality routine to the code
/// at `pc`, as far as the unwinder can be asked. It serves the log, since it may take locks and milliseconds.
bool has_other_personality(const void* pc) noexcept;

#pragma GCC visibility push(default)
/// Returns the key of the descriptor's current registration. Its registration number is 0 if there is none.
RegistrationKey registration_of(unw_dyn_info_t* procedure) noexcept;

/// Number of calls of _Unwind_FindEnclosingFunction() in the project's own exception runtime, where that one is in use.
extern constinit std::atomic<unsigned> own_runtime_questions;

// Descriptors without any guarantee: any memory that can be read. The registry knows which of it is registered, and
// with which Behind.

/// Whether `di` is registered now, with `behind`. A lookup of a few loads. Signal-safe.
bool is_registered(const unw_dyn_info_t* di, Behind behind) noexcept;

/// cancel_procedure() for descriptors that were registered with `behind`. All others count as not registered.
Status cancel_procedure(unw_dyn_info_t* di, Behind behind) noexcept;

/// Prefetches the memory that register or cancel looks at first: the descriptor and, where the descriptor's address
/// tells it (docs/registry.md "Which node"), its node. It reads nothing of the descriptor, which may be any address.
/// Signal-safe.
void prefetch_changing(const unw_dyn_info_t* di) noexcept;
#pragma GCC visibility pop

}  // namespace jitunwind
