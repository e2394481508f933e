// Evaluates DWARF expressions (DWARF 5, 2.5 and 6.4) with the registers of one frame. Makes no rows.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/rows/registers.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The inputs that an expression's operations may use.
struct ExpressionInput {
  const Arch& arch;
  const RegisterFile& registers;
  const Memory& memory;
  MemoryWindow& window;
  std::optional<std::uint64_t> initial;  ///< pushed first: the CFA for register rules, nothing for a CFA rule
};

/// Returns the value on top of the stack at the end. The evaluation is bounded: 64 stack entries, 4096 operations.
/// Error::at is the offset of the operation that failed. Signal-safe when the memory is.
Result<std::uint64_t> evaluate(Expression expression, const ExpressionInput& input) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
