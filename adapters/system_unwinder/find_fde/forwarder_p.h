// Functions that call a target which can be replaced. They serve as pointers to code of a library that may be unloaded
// while others keep the pointers. Their memory is never freed.
#pragma once

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"

namespace jitunwind {

/// Null: there is no executable memory. Not signal-safe.
FindFde* make_forwarder(FindFde* target) noexcept;

/// On return no thread is in a call of the former target that was made through the forwarder. The wait ends after a
/// second: a thread that is still counted has left the call by a jump, or belongs to the parent of a forked process.
/// Not signal-safe.
void redirect(FindFde* forwarder, FindFde* target) noexcept;

}  // namespace jitunwind
