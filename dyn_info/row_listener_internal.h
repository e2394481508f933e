// All rows of a stretch of registered code, in ascending order, for what the last of them costs alone.
#pragma once

#include "jitunwind/dyn_info/procedure_rows_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Is called under a hold: must not look anything up. Expressions of rows live as long as the hold.
class RowListener {
 public:
  /// `row.range` is where it holds, cut to what was asked about. False: enough.
  virtual bool row(const FrameRow& row) noexcept = 0;
  /// False: enough.
  virtual bool no_row(AddrRange code, const Error& why) noexcept = 0;

 protected:
  ~RowListener() = default;
};

/// What the procedure says of `code`, in front of an ALIAS, which must be looked up. How far that was: behind the last
/// that the listener was told of. Signal-safe; no allocation.
Addr tell_rows(const unw_dyn_info_t& info, const DescriptionParts& parts, AddrRange code, Lookup& lookup,
               RowListener& listener) noexcept;

/// The same of the newest registered procedure that covers the beginning of `code`. Errors: no_info, there is none;
/// too_deep, too many holds.
Result<Addr> tell_registered_rows(AddrRange code, Lookup& lookup, RowListener& listener) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
