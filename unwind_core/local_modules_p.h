// Which of the two ways to the modules of this process there are.
#pragma once

#include "unwind_core/local_modules.h"

namespace jitunwind {

/// Whether the C library that this program runs with has _dl_find_object.
bool has_dl_find_object() noexcept;

}  // namespace jitunwind
