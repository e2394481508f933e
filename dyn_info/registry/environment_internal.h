// Adapters that are attached because the environment says so: JITUNWIND_ATTACH=gdb, names separated by commas.
#pragma once

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// Before the first registration, inside of a WritingScope: environment_words() says who looks, and what becomes of
/// names that are not known.
void attach_by_environment() noexcept;

// Defined in the layer of adapters, as with system_unwinder_seam_internal.h. Inside of a WritingScope.

Status attach_gdb_in_writer() noexcept;
/// What is said on standard error where the environment has attached it; null: nothing.
const char* remark_on_gdb() noexcept;

}  // namespace jitunwind
