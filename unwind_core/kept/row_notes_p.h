// What is counted and logged of rows that were made because none was kept.
#pragma once

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

struct NewRow;

/// Of RowCache::find_new(). Signal-safe.
void note_new_row(Lookup& lookup, const Found& found, const NewRow& row) noexcept;
/// A row that could be kept is not, since its address was met for the first time. Signal-safe.
void note_met_once(Addr at) noexcept;
/// Of AddressSpace::find_guess(). Signal-safe.
void note_guess(const Lookup& lookup, const FrameRow& row) noexcept;

}  // namespace jitunwind
