// Counts and log lines of rows that were made because none was kept.
#pragma once

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {

struct AnyRow;
struct NewRow;
struct RowCache;

/// Whether every row that is made is a line of the log.
inline bool logs_rows() noexcept {
  constexpr auto k_topics = static_cast<unsigned>(LogTopic::walk) | static_cast<unsigned>(LogTopic::rows);
  return (log_words() & k_topics) != 0;
}
/// Notes that rows.find_new() has found nothing. Signal-safe.
void note_no_row(const Lookup& lookup, const AnyRow& row, RowAnswer answer) noexcept;
/// Notes a row of rows.find_new() that is logged, or not kept. Signal-safe.
void note_unusual_row(const RowCache& rows, const Lookup& lookup, const NewRow& row) noexcept;
/// Logs a row that could be kept and is not, since its address was met for the first time. Signal-safe.
void log_met_once(Addr at) noexcept;
/// Notes an answer of AddressSpace::find_guess(). Signal-safe.
void note_guess(const Lookup& lookup, const FrameRow& row) noexcept;

}  // namespace jitunwind
