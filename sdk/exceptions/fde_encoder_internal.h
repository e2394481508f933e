// The rows of one procedure as CIE and FDE in a record that lives as long as the procedure.
#pragma once

#include <cstddef>
#include <span>

#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// Not published yet. `procedure` is what the source of registered procedures says of the code at `pc`. The FDE is the
/// procedure's; the record covers those addresses around `pc` whose rows it has: all, where that is not much. Where
/// there is no row the FDE says that the frame has no caller. Errors: that of the row at `pc`; invalid_argument (what
/// call frame information cannot say); row_too_wide; out_of_memory (the pool of records is empty). Signal-safe.
Result<DerivedRecord*> encode_fde(const ProcedureInfo& procedure, Addr pc) noexcept;

/// The same of all its code in front of an ALIAS, in one run through the rows: in ascending order, by `next`. The ends
/// and some between may be missing: what is behind is memory that there is not. Signal-safe.
DerivedRecord* encode_stretches(const ProcedureInfo& procedure) noexcept;

class FdeReceiver {
 public:
  /// A CIE and an FDE behind it, which covers `code`; no end mark.
  virtual void fde(AddrRange code, std::span<const std::byte> bytes) = 0;
  virtual void refused(const Error& error) noexcept = 0;

 protected:
  ~FdeReceiver() = default;
};

/// All that registered procedures say of `code`, in ascending order: one in table format may have many FDEs, with gaps
/// between them. Code that nobody describes is left out. Refused, with e_alias_depth: procedures of which ALIAS
/// describes more than 4096 instruction units. Throws what the receiver throws, and std::bad_alloc.
void encode_fdes(AddrRange code, FdeReceiver& receiver);

}  // namespace jitunwind
