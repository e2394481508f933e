// The rows of one procedure as CIE and FDE in a record that lives as long as the procedure.
#pragma once

#include "dyn_info/derived_records_p.h"
#include "unwind_core/error.h"
#include "unwind_core/row_source.h"

namespace jitunwind {

/// Not published yet. `procedure` is what the source of registered procedures says of the code at `pc`. Where a stretch
/// of the procedure has no row the FDE says that its frames have no caller. Errors: that of the row at `pc`;
/// e_alias_depth (code described by ALIAS that is longer than 4 KiB); invalid_argument (what call frame information
/// cannot say); out_of_memory (the pool of records is empty). Signal-safe.
Result<DerivedRecord*> encode_fde(const ProcedureInfo& procedure, Addr pc) noexcept;

}  // namespace jitunwind
