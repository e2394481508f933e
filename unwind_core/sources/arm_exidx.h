// The exception tables of ARM with 32 bits (EHABI32: "Exception Handling ABI for the Arm Architecture", 2024Q3, 6 and
// 10): .ARM.exidx leads to the instructions that undo a procedure's frame. They say what the frame is where the
// procedure calls; at an interrupted instruction of a prologue or epilogue they may be wrong, as for every reader of
// them.
#pragma once

#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The row of the procedure that covers `pc`, by the table `exidx` of 8-byte entries in ascending order, in the byte
/// order of lookup.space.arch. False: the table has nothing for it. Errors as of bytes that no compiler writes.
Found find_exidx_row(const SectionBytes& exidx, Addr pc, Lookup& lookup, FrameRow& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
