// The definition of _Unwind_Find_FDE in this shared library or program.
#pragma once

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"

namespace jitunwind {

/// What answers behind it.
NextDefinition& next_find_fde() noexcept;

}  // namespace jitunwind
