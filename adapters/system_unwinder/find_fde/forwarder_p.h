// Functions that call another one, and may be told to call yet another: for pointers to code that others keep, in
// libraries that may be unloaded. They are in memory that is never given back.
#pragma once

#include "jitunwind/adapters/system_unwinder/find_fde/level_one_p.h"

namespace jitunwind {

/// Null: there is no executable memory to be had. Not signal-safe.
FindFde* make_forwarder(FindFde* target) noexcept;

/// When it returns no thread is in a call of the former target that was made through the forwarder, unless it has been
/// there for a second: then it has left it by a jump, or is a thread of a process that was forked. Not signal-safe.
void redirect(FindFde* forwarder, FindFde* target) noexcept;

}  // namespace jitunwind
