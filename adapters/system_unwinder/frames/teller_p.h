// Telling procedures to an unwinder that does not call _Unwind_Find_FDE.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/unwind_core/above_internal.h"

namespace jitunwind {

/// The argument of __register_frame in this process.
enum class FrameContract : std::uint8_t {
  none,            ///< there is no such function, or it has no effect
  section,         ///< sections, several of the same code among them: libgcc 12 and older
  unique_section,  ///< sections, but only one for each begin of code: libgcc 13 and newer ignore others
  fde,             ///< one FDE: LLVM's libunwind
};

/// The contract by which this process's unwinder is told; none: it is not told.
[[gnu::visibility("default")]] extern constinit std::atomic<FrameContract> told_contract;

/// Begins to tell the unwinder of all procedures, unless that was done before. Not signal-safe. Allocates.
JITUNWIND_ABOVE void start_telling() noexcept;

}  // namespace jitunwind
