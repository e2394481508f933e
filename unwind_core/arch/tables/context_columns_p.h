// The columns of a table that its ucontext_t always has.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

static_assert(k_max_values % 4 == 0);  // RegisterFile::set_from_context() takes them by fours

/// It is never defined: a constant expression cannot call it.
void columns_differ_or_have_a_gap();
/// The function does not compile if the table has another form.
consteval ContextColumns columns_in_context(std::span<const RegisterInfo> registers) {
  ContextColumns columns;
  for (const RegisterInfo& reg : registers) {
    if (reg.ucontext < 0 || reg.reg_class == RegClass::vector) continue;
    if (reg.column != columns.count || reg.dwarf != columns.count) columns_differ_or_have_a_gap();
    columns.offsets[columns.count++] = reg.ucontext;
  }
  return columns;
}

}  // namespace jitunwind
