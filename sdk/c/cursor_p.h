// The content of a ju_cursor: its kind, a frame of the C++ walk, and the frame's target.
#pragma once

#include <cstdint>

#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/walk.h"
#include "jitunwind/sdk/walk.h"

namespace jitunwind::c {

/// The first members of a ju_target.
struct TargetHead {
  Kind kind = Kind::target;
  std::uint64_t renewals = 0;  ///< number of renewals; results from before the last one are void
};

struct CursorInPlace {
  Kind kind;
  Frame frame;
  const TargetHead* target = nullptr;  ///< null: this process
  std::uint64_t renewals = 0;
};
// The limit: compiled programs have fixed the size.
static_assert(sizeof(CursorInPlace) <= sizeof(ju_cursor) && alignof(CursorInPlace) <= alignof(ju_cursor));
static_assert(std::is_trivially_copyable_v<CursorInPlace>);

/// `of`: the constructor argument of a Frame, which is copied once, to its final place.
template <class Of>
void begin(ju_cursor& cursor, const Of& of, const TargetHead* target = nullptr) noexcept {
  new (&cursor) CursorInPlace{Kind::cursor, Frame(of), target, target ? target->renewals : 0};
}
inline Frame& frame_of(ju_cursor& cursor) noexcept { return reinterpret_cast<CursorInPlace*>(&cursor)->frame; }
inline const Frame& frame_of(const ju_cursor& cursor) noexcept {
  return reinterpret_cast<const CursorInPlace*>(&cursor)->frame;
}

/// Libraries that check handles never free a target's memory, so that it outlives the target. Precondition: a cursor.
inline bool is_of_void_target(const ju_cursor& cursor) noexcept {
  const auto& at = reinterpret_cast<const CursorInPlace&>(cursor);
  return at.target && (at.target->kind != Kind::target || at.target->renewals != at.renewals);
}
inline bool is_cursor(const ju_cursor* cursor) noexcept {
  return is_handle(cursor, Kind::cursor) && !(k_checks_handles && is_of_void_target(*cursor));
}
/// Chooses the error. Precondition: the cursor is bad.
[[gnu::cold]] inline ju_status refuse_cursor(const ju_cursor* cursor, ju_error* error) noexcept {
  if (is_handle(cursor, Kind::cursor)) return tell(error, JU_FREED_HANDLE, "cursor");
  return refuse_handle(cursor, "cursor", error);
}
inline ju_status check_cursor(const ju_cursor* cursor, ju_error* error) noexcept {
  return is_cursor(cursor) ? JU_OK : refuse_cursor(cursor, error);
}

/// Checks memory in which a cursor is to begin.
inline ju_status check_room(const ju_cursor* cursor, ju_error* error) noexcept {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(cursor) % alignof(ju_cursor) == 0;
  return cursor && is_aligned ? JU_OK : refuse_handle(cursor, "cursor", error);
}

}  // namespace jitunwind::c
