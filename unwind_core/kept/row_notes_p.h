// Counts and log lines of rows that were made because none was kept.
#pragma once

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

struct NewRow;
struct RowCache;

/// Notes an answer of rows.find_new(). Signal-safe.
void note_new_row(const RowCache& rows, Lookup& lookup, const Found& found, const NewRow& row) noexcept;
/// Notes a row that could be kept and is not, since its address was met for the first time. Signal-safe.
void note_met_once(Addr at) noexcept;
/// Notes an answer of AddressSpace::find_guess(). Signal-safe.
void note_guess(const Lookup& lookup, const FrameRow& row) noexcept;

}  // namespace jitunwind
