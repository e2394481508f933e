// The full evaluator of rows: row + registers of a frame + memory -> registers of its caller. Others are short forms of
// it, for some rows: docs/caches.md, "Short forms".
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/rows/registers.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A frame as the row of its callee leads to it.
struct Caller {
  RegisterFile registers;
  Addr cfa = 0;
  Addr pc = 0;             ///< signature bits stripped; 0 ends the stack
  bool outermost = false;  ///< the row says that there is no caller
};

/// Registers that the row leaves unspecified keep their value when the psABI preserves them and have none otherwise.
/// A register whose slot cannot be read, or whose rule needs a register without value, has no value in the caller; that
/// is an error only for the CFA, the return address and SP. Signal-safe when the memory is.
Status apply_row(const FrameRow& row, const RegisterFile& frame, const Arch& arch, const Memory& memory,
                 MemoryWindow& window, Caller& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
