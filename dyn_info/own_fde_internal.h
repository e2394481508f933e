// FDEs of registered procedures in a table format, in their place, and the readability of that memory.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The table pair of every procedure whose FDE was announced to libgcc; its address identifies them. That memory is
/// probed before it is read. All other registered memory can be read (docs/contracts.md).
extern const unw_word_t told_pair;

/// The FDE that the procedure's table has for `at`; its bytes live as long as the hold on the procedure. False: none.
/// Precondition: a table format. Signal-safe.
Found find_own_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, MemoryWindow& window, Fde& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
