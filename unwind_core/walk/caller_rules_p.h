// Rows to rules: what a walk of addresses makes of frames that no rule is kept of yet.
#pragma once

#include "jitunwind/unwind_core/walk/caller_chain_p.h"

namespace jitunwind {

/// The rule of a row that is not compact, in a word. Kind compact: there is none.
CallerRule rule_of_other(const FrameRow& row, KeptBy by, const Arch& arch) noexcept;

/// Steps by rows that need only pc, SP and frame pointer, until a rule is known of the place or there is no more room:
/// full. Outermost: the place's row says so. Unknown: no rule is known, and the row does not help. Needs room on the
/// stack (small_stack_internal.h).
CallerChain::Stop step_by_rows(CallerChain& chain) noexcept;

/// Steps the cursor, has the chain go on where it is then, and keeps a rule of the place it left, if one says it.
/// False: the cursor has not moved. Precondition: it stands where the chain does. Needs room on the stack.
bool step_by_cursor(CallerChain& chain, Cursor& cursor) noexcept;

}  // namespace jitunwind
