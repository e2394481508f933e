// Attaches the adapters that the environment names, separated by commas, as in JITUNWIND_ATTACH=gdb.
#pragma once

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

/// The registry calls it before the first registration, inside a WritingScope. environment_words() describes who reads
/// the variable and what becomes of unknown names.
void attach_by_environment() noexcept;

// The layer of adapters defines these, as it does those of system_unwinder_seam_internal.h. The caller is inside a
// WritingScope.

Status attach_gdb_in_writer() noexcept;
/// Returns the remark for standard error where the environment has attached the adapter, or null for none.
const char* remark_on_gdb() noexcept;

}  // namespace jitunwind
