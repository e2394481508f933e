// The row of a procedure's first instruction as a guess for interrupted pcs: nothing has been pushed since the call.
#pragma once

#include <optional>

#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {

/// The return address of such a procedure: *(cfa + entry_ra) if the CPU's calls push it, else the link register. Empty:
/// it is not known.
std::optional<Addr> return_address_at_entry(const Lookup& lookup) noexcept;

/// The row, of that origin, if `ra` follows a call.
Found guess_entry_row(const Lookup& lookup, std::optional<Addr> ra, RowOrigin origin, FrameRow& out) noexcept;

}  // namespace jitunwind
