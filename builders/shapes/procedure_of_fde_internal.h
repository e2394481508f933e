// Procedures that are described by an FDE in memory.
#pragma once

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Makes a procedure in format IP_OFFSET whose table refers to one FDE. The FDE may lie any distance from code and
/// table, and must stay in place, readable and unchanged until the procedure is cancelled. `fde` 0 stands for none;
/// `name` is name_ptr. Signal-safe.
unw_dyn_info_t procedure_of_fde(AddrRange code, Addr fde, Addr name = 0) noexcept;

/// Makes a procedure from an FDE whose source has no personality routines, such as a debugger's list. Other sources of
/// the code's personality are consulted before exceptions pass it. Signal-safe.
unw_dyn_info_t procedure_without_personality(AddrRange code, Addr fde) noexcept;
/// Whether procedure_without_personality() made it. Signal-safe.
bool may_have_other_personality(const unw_dyn_info_t& info) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
