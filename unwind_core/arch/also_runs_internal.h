// Programs of another CPU that systems of this one run as well.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// Whose they are; of their threads the kernel gives registers by that CPU's NT_PRSTATUS. Null: none are known.
const Arch* also_runs(const Arch& arch) noexcept;

}  // namespace jitunwind
