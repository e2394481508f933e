// Call frame instructions as compilers write them, straight to compact rows: a fifth of the instructions that a row in
// full takes.
#pragma once

#include "jitunwind/unwind_core/kept/compact_row_p.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/known_cies_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The row that holds at `at` in the FDE, and where it holds. False: a compact row cannot say it, or the instructions
/// are of an unusual kind, or broken; the general way tells. Signal-safe.
bool find_compact_row(const CompactCode& code, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept;

/// The row that the instructions of a CIE lead to. False: as above.
bool find_initial_row(const Cie& cie, const CompactLayout& layout, CompactRow& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
