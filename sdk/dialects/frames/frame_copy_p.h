// Call frame information of a JIT rewritten for another place, with absolute pointers.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

/// Appends a CIE and an FDE with the same rows to `into` and returns the offset of the FDE. They have no personality
/// routine. Nothing: a row is broken or cannot be written, and nothing is appended. Throws std::bad_alloc.
std::optional<std::size_t> copy_frames(const Fde& fde, const CfiContext& context, std::vector<std::byte>& into);

}  // namespace jitunwind
