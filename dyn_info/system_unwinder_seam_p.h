// What the registry asks of whoever makes procedures known to the unwinder of the C++ run-time. Declared here, defined
// in the layer above that does it: every library that is assembled has both. That the registry calls it is also what
// makes a linker take the definitions of the other side out of an archive.
#pragma once

#include <atomic>
#include <span>

#include "dyn_info/libunwind-dynamic.h"
#include "dyn_info/registry.h"

namespace jitunwind {

// None of these is signal-safe; all are called outside of the registry's lock.

/// Before the first registration, and before any further one.
void attach_system_unwinder() noexcept;

/// Set for ever where the unwinder does not ask and has to be told of every change, by the functions below.
inline constinit std::atomic<bool> unwinder_is_told{false};

/// Before register returns.
void tell_registered(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// Before cancel returns. Some may not have been registered.
void tell_cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept;
/// Before retire returns. Does not wait.
void tell_retired() noexcept;

/// The one that the descriptor has now; registration 0: none.
RegistrationKey registration_of(unw_dyn_info_t* procedure) noexcept;

}  // namespace jitunwind
