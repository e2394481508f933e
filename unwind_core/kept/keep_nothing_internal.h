// The word by which a process asks for the reference engine: docs/caches.md "Doing without".
#pragma once

#pragma GCC visibility push(default)
namespace jitunwind {

/// JITUNWIND_KEEP=nothing. Looks at the environment each time: for use while the library is loaded (environment.h). The
/// first to ask names unknown words on standard error.
bool is_to_keep_nothing() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
