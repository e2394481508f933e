// The exception tables of 32-bit ARM (EHABI32: "Exception Handling ABI for the Arm Architecture", 2024Q3, 6 and 10).
// .ARM.exidx leads to the instructions that undo a procedure's frame. They describe the frame where the procedure calls
// others. They may be wrong at an interrupted instruction of a prologue or epilogue, as for every reader of these
// tables.
#pragma once

#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Finds the row of the procedure that covers `pc`. `exidx` is a table of 8-byte entries in ascending order, in the
/// byte order of lookup.space.arch. Returns false when the table has nothing for `pc`. Fails for bytes that no compiler
/// writes.
Found find_exidx_row(const SectionBytes& exidx, Addr pc, Lookup& lookup, FrameRow& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
