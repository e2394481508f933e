// The code in which libgcc_s cannot be walked. Before it lands, uw_install_context_1 overwrites the registers and the
// return address that its own frame has saved, where unwind information says they are, with those of the frame where it
// lands. Nobody can find its callers then, up to the jump (__builtin_eh_return).
#pragma once

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::storm {

/// Precondition: a thread has ended, which loads libgcc_s. Throws if libgcc_s's functions have changed.
void find_where_libgcc_lands();

bool is_where_libgcc_lands(Addr pc) noexcept;

}  // namespace jitunwind::storm
