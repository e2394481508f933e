// What a ju_cursor holds: its kind, and a frame of the C++ walk.
#pragma once

#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/walk.h"
#include "jitunwind/sdk/walk.h"

namespace jitunwind::c {

struct CursorInPlace {
  Kind kind;
  Frame frame;
};
// Programs that are compiled already have no more room.
static_assert(sizeof(CursorInPlace) <= sizeof(ju_cursor) && alignof(CursorInPlace) <= alignof(ju_cursor));
static_assert(std::is_trivially_copyable_v<CursorInPlace>);

inline void begin(ju_cursor& cursor, const Frame& frame) noexcept { new (&cursor) CursorInPlace{Kind::cursor, frame}; }
inline Frame& frame_of(ju_cursor& cursor) noexcept { return reinterpret_cast<CursorInPlace*>(&cursor)->frame; }
inline const Frame& frame_of(const ju_cursor& cursor) noexcept {
  return reinterpret_cast<const CursorInPlace*>(&cursor)->frame;
}

inline ju_status check_cursor(const ju_cursor* cursor, ju_error* error) noexcept {
  return check_kind(cursor, Kind::cursor, "cursor", error);
}

}  // namespace jitunwind::c
