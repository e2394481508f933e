// How a CPU's psABI aligns what other programs' structures have.
#pragma once

#include <cstddef>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// Bytes by which a number of 8 bytes is aligned in a structure.
std::size_t alignment_of_8_bytes(const Arch& arch) noexcept;

}  // namespace jitunwind
