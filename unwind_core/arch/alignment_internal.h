// The alignment of a CPU's psABI in structures of other programs.
#pragma once

#include <cstddef>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The alignment in bytes of a number of 8 bytes in a structure.
std::size_t alignment_of_8_bytes(const Arch& arch) noexcept;

}  // namespace jitunwind
