// FDEs of registered procedures in a table format, in their place.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The FDE that the procedure's table has for `at`; its bytes live as long as the hold on the procedure. False: none.
/// Precondition: a table format. Signal-safe.
Found find_own_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, MemoryWindow& window, Fde& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
