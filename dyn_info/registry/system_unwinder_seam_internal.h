// The seam between the registry and the layer above, which makes procedures known to the unwinder of the C++ run-time.
// Its functions are declared here and defined on one of the two sides; every assembled library has both. The registry's
// call also makes a linker take the other side's definitions out of an archive.
#pragma once

#include <atomic>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/registry.h"

namespace jitunwind {

/// The registry calls it before every registration, the first included, and outside its lock. Not signal-safe.
void attach_system_unwinder() noexcept;

/// Returns whether call frame information beside that of registered procedures gives a personality routine to the code
/// at `pc`, as far as the unwinder can be asked. It serves the log, since it may take locks and milliseconds.
bool has_other_personality(const void* pc) noexcept;

/// Returns the key of the descriptor's current registration. Its registration number is 0 if there is none.
[[gnu::visibility("default")]] RegistrationKey registration_of(unw_dyn_info_t* procedure) noexcept;

#pragma GCC visibility push(default)
/// Number of calls of _Unwind_FindEnclosingFunction() in the project's own exception runtime, where that one is in use.
extern constinit std::atomic<unsigned> own_runtime_questions;
#pragma GCC visibility pop

}  // namespace jitunwind
