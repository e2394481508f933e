// The target of the included headers: the interface is compiled once for each CPU, by libunwind-<target>.h.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

#include <libunwind.h>

/// An inner namespace of jitunwind, so that one program can link the libraries of several targets.
#define JITUNWIND_COMPAT UNW_PASTE(compat_, UNW_TARGET)

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

inline const Arch& target_arch() noexcept { return arch::UNW_TARGET; }

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
