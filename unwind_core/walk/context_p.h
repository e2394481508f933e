// The parts of the kernel's ucontext_t that resuming changes.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// Ends the records behind the one with vector registers, if that is the first: what is behind it, wider registers
/// among it, no call preserves. `ucontext` is writable host memory. Signal-safe.
void end_records_behind_vectors(const Arch& arch, void* ucontext) noexcept;

}  // namespace jitunwind
