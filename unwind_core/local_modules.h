// The modules of this process.
#pragma once

#include "unwind_core/module.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Asks _dl_find_object (glibc 2.35), which takes no lock; where it is missing dl_iterate_phdr, which does: then a walk
/// in a signal handler that interrupted dlopen may deadlock. Constant-initialised, never destroyed.
const ModuleFinder& local_modules() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
