// Holds the description of a procedure of this process against its code: docs/testing.md. JITUNWIND_CHECK does so at
// each registration.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/check/check.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Compares all rows of a descriptor, of any format, with the code, which must be in place. Neither needs to be
/// registered. ALIAS is followed to registered procedures. Allocates and throws std::bad_alloc; not signal-safe.
CheckReport check(const unw_dyn_info_t& info);

}  // namespace jitunwind
#pragma GCC visibility pop
