// The two ways to the modules of this process, one by one, so that the second is tested where the first is there.
#pragma once

#include "unwind_core/local_modules.h"

namespace jitunwind {

/// As local_modules(), by dl_iterate_phdr alone.
const ModuleFinder& local_modules_by_iteration() noexcept;

/// Whether the C library that this program runs with has _dl_find_object.
bool has_dl_find_object() noexcept;

}  // namespace jitunwind
