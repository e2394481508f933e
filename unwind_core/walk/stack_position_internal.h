// The steps by compact rows, for those who move.
#pragma once

#include "jitunwind/unwind_core/kept/compact_step_p.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/walk/stack_position.h"

namespace jitunwind {

inline bool StackPosition::find_caller(const CompactRow& row, CompactCaller& out) noexcept {
  return jitunwind::find_caller(row, space_->row_cache->layout, space_->memory, window_, registers_, out) &&
         out.pc != 0;
}

inline void StackPosition::go_to(const CompactCaller& caller, const CompactRow& row) noexcept {
  restore(row, space_->row_cache->layout, caller, registers_);
  arrive(CodeAddress::returned_to(caller.pc));
}

inline bool StackPosition::find_caller(const CompactRow& row, CopiedCaller& out) noexcept {
  return copy_caller(row, space_->row_cache->layout, space_->memory, window_, registers_, out) && out.pc != 0;
}

inline void StackPosition::go_to(const CopiedCaller& caller, const CompactRow& row) noexcept {
  restore(row, space_->row_cache->layout, caller, registers_);
  arrive(CodeAddress::returned_to(caller.pc));
}

inline bool StackPosition::is_itself(const CompactCaller& caller) const noexcept {
  return caller.pc == pc() && caller.sp == sp();
}

}  // namespace jitunwind
