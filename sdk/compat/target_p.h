// The target of the headers at hand: the interface is compiled once for each CPU, by libunwind-<target>.h.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

#include <libunwind.h>

/// Inside of namespace jitunwind, so that the libraries of several targets go into one program.
#define JITUNWIND_COMPAT UNW_PASTE(compat_, UNW_TARGET)

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

inline const Arch& target_arch() noexcept { return arch::UNW_TARGET; }

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
