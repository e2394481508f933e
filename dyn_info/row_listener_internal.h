// All rows of a stretch of registered code, in ascending order, at the cost of a lookup of the last one.
#pragma once

#include "jitunwind/dyn_info/procedure_rows_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Called while a hazard pointer is held: it must not look anything up. Expressions of rows are valid while that is
/// held.
class RowListener {
 public:
  /// `row.range` is the range for which the row is valid, cut to the requested one. Returns false when no more rows are
  /// wanted.
  virtual bool row(const FrameRow& row) noexcept = 0;
  /// Returns false when no more rows are wanted.
  virtual bool no_row(AddrRange code, const Error& why) noexcept = 0;

 protected:
  ~RowListener() = default;
};

/// Passes the procedure's rows of `code` up to an ALIAS, which must be looked up. Returns the end of the last range
/// that the listener got. Signal-safe; no allocation.
Addr tell_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code, Lookup& lookup,
               RowListener& listener) noexcept;

/// Passes those of the newest registered procedure that covers the beginning of `code`. Errors: no_info, there is none;
/// too_deep, too many hazard pointers.
Result<Addr> tell_registered_rows(AddrRange code, Lookup& lookup, RowListener& listener) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
