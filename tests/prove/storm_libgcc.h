// Where libgcc_s cannot be walked: before it lands, uw_install_context_1 writes the registers and the return address of
// the frame where it lands over those that its own frame has saved, where unwind information says they are. From there
// on, to the jump (__builtin_eh_return), its callers cannot be told by anybody.
#pragma once

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::storm {

/// Precondition: a thread has ended, which loads libgcc_s. Throws where its functions are not as they are known.
void find_where_libgcc_lands();

bool is_where_libgcc_lands(Addr pc) noexcept;

}  // namespace jitunwind::storm
