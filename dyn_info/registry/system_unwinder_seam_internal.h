// What the registry asks of whoever makes procedures known to the unwinder of the C++ run-time. Declared here, defined
// in the layer above that does it: every library that is assembled has both. That the registry calls it is also what
// makes a linker take the definitions of the other side out of an archive.
#pragma once

#include <atomic>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

namespace jitunwind {

/// Before the first registration, and before any further one. Not signal-safe; called outside of the registry's lock.
void attach_system_unwinder() noexcept;

/// The one that the descriptor has now; registration 0: none.
RegistrationKey registration_of(unw_dyn_info_t* procedure) noexcept;

#pragma GCC visibility push(default)
/// Times that _Unwind_FindEnclosingFunction() of our own exception runtime was called, where that is the one.
extern constinit std::atomic<unsigned> own_runtime_questions;
#pragma GCC visibility pop

}  // namespace jitunwind
