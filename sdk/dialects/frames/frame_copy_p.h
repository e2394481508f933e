// Call frame information that a JIT has told, written anew: for another place, with pointers that are absolute.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

/// Appends a CIE and an FDE with the same rows to `into`; the answer is where the FDE begins. Nothing: a row is broken,
/// or cannot be written, and nothing is appended. They have no personality routine. Throws std::bad_alloc.
std::optional<std::size_t> copy_frames(const Fde& fde, const CfiContext& context, std::vector<std::byte>& into);

}  // namespace jitunwind
