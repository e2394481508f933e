// The full evaluator of rows: row + registers of a frame + memory -> registers of its caller. The other evaluators are
// short forms of it for some rows: docs/caches.md, "Short forms".
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/rows/registers.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The caller's frame that results from applying a row.
struct Caller {
  RegisterFile registers;
  Addr cfa = 0;
  Addr pc = 0;             ///< signature bits stripped; 0 ends the stack
  bool outermost = false;  ///< the row says that there is no caller
};

/// Applies a row. Registers that the row leaves unspecified keep their value if the psABI preserves them, and otherwise
/// have none. A register has no value in the caller when its slot cannot be read, or when its rule needs a register
/// without value. That is an error only for the CFA, the return address and SP. Signal-safe when the memory is.
Status apply_row(const FrameRow& row, const RegisterFile& frame, const Arch& arch, const Memory& memory,
                 MemoryWindow& window, Caller& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
