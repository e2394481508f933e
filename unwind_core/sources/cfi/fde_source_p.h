// The common part of .eh_frame and .debug_frame as sources: once the FDE is found, rows and procedures are alike.
#pragma once

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {

class FdeSource : public AnyRowSource {
 public:
  constexpr explicit FdeSource(RowOrigin origin) noexcept : origin_(origin) {}

  RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept final;

 protected:
  /// Reads the procedure of an FDE.
  Status describe(Fde& fde, Lookup& lookup, ProcedureInfo& out) const noexcept;

 private:
  /// The FDE whose range holds lookup.at.lookup(), and how to read its instructions.
  virtual Found find_fde(Lookup& lookup, CfiContext& context, Fde& out) const noexcept = 0;

  RowOrigin origin_;
};

/// The first FDE of the scan that covers `pc`. When none does, the first entry that could not be read is the error: it
/// might have been the one.
Found find_fde(FdeScan scan, Addr pc, Fde& out) noexcept;

}  // namespace jitunwind
