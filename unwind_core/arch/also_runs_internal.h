// Programs of another CPU that systems of this one run as well.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The CPU of these programs; the kernel gives registers of their threads by that CPU's NT_PRSTATUS. Null: none are
/// known.
const Arch* also_runs(const Arch& arch) noexcept;

}  // namespace jitunwind
