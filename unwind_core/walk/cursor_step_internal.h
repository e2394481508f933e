// The step of a cursor where its row is kept, inline: what nearly every step is. Steps of a position by compact rows.
#pragma once

#include "jitunwind/unwind_core/kept/compact_step_p.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "jitunwind/unwind_core/walk/stack_position.h"

namespace jitunwind {

inline bool StackPosition::find_caller(const CompactRow& row, CompactCaller& out) noexcept {
  return jitunwind::find_caller(row, space_->row_cache->layout, space_->memory, window_, registers_, out) &&
         out.pc != 0;
}

inline void StackPosition::go_to(const CompactCaller& caller, const CompactRow& row) noexcept {
  restore_saved(row, space_->row_cache->layout, caller.cfa, registers_);
  go_to(caller);
}

inline void StackPosition::go_to(const CompactCaller& caller) noexcept {
  restore_others(space_->row_cache->layout, caller, registers_);
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

/// Brent, "An improved Monte Carlo factorization algorithm", 1980: one marked frame, moved at every power of two, is
/// met again by any cycle. Equal neighbours are found at once. The CFA may move either way: stacks switch.
[[gnu::always_inline]] inline bool Cursor::repeats(Addr pc, Addr cfa) noexcept {
  if (depth_ != 0 && pc == mark_pc_ && cfa == mark_cfa_) return true;
  if (depth_ + 1 == next_mark_) {
    mark_pc_ = pc;
    mark_cfa_ = cfa;
    next_mark_ *= 2;
  }
  return false;
}

[[gnu::always_inline]] inline bool Cursor::leads_to_code(Addr pc) noexcept {
  return code_.contains(CodeAddress::returned_to(pc).lookup()) || leads_to_other_code(pc);
}

template <class C, class Row>
[[gnu::always_inline]] inline bool Cursor::go_on_to(const C& caller, const Row& row) noexcept {
  if (is_itself(caller) || repeats(caller.pc, caller.cfa)) return false;
  go_to(caller, row);
  pc_written_ = false;
  sp_written_ = false;
  pc_signature_ = signature_by(row) & 3;
  pushed_arguments_ = 0;
  return true;
}

[[gnu::always_inline]] inline bool Cursor::step_by_kept(KeepTicket& ticket) noexcept {
  if (stop_ != StopReason::none || depth_ == k_max_frames) return false;
  const RowCache* const rows = space_->row_cache;
  KeptRow kept;
  return rows && rows->find(address_.lookup(), module_, rule_place_, kept, ticket) && leave_by(kept.row);
}

[[gnu::always_inline]] inline bool Cursor::leave_by(const CompactRow& row) noexcept {
  CompactCaller caller;
  if (!find_caller(row, caller)) [[unlikely]]
    return leave_by_copy(row);
  return leads_to_code(caller.pc) && go_on_to(caller, row);
}

/// Cursor::step(), for who answers by other words than a Result. False: otherwise() is asked then, with the ticket.
struct CursorStep {
  [[gnu::always_inline]] static bool is_made(Cursor& cursor, KeepTicket& ticket) noexcept {
    return cursor.step_by_kept(ticket);
  }
  static Result<bool> otherwise(Cursor& cursor, const KeepTicket& ticket) noexcept {
    return cursor.step_by_sources(ticket);
  }
};

}  // namespace jitunwind
