// Procedures that are described by an FDE which lies in memory.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A procedure in format IP_OFFSET whose table refers to one FDE, which may lie any distance from anything and must
/// stay in place, readable and unchanged until the procedure is cancelled; 0: none. `name`: as name_ptr. Signal-safe.
unw_dyn_info_t procedure_of_fde(AddrRange code, Addr fde, Addr name = 0) noexcept;

/// The same of an FDE that was read where nothing is said of personality routines, as in lists of debuggers: whoever
/// else knows of the code is asked before exceptions pass it. Signal-safe.
unw_dyn_info_t procedure_without_personality(AddrRange code, Addr fde) noexcept;
/// Whether it is such a one. Signal-safe.
bool may_have_other_personality(const unw_dyn_info_t& info) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
