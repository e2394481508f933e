// The definition of _Unwind_Find_FDE in this shared library or program.
#pragma once

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"

namespace jitunwind {

/// The definition that is called for code that is not registered.
NextDefinition& next_find_fde() noexcept;

}  // namespace jitunwind
