// libunwind's cursor is room for the engine's.
#pragma once

#include <new>

#include "unwind_core/cursor.h"

#include <libunwind.h>

namespace jitunwind {

static_assert(sizeof(Cursor) <= sizeof(unw_cursor_t) && alignof(Cursor) <= alignof(unw_cursor_t));

inline Cursor& cursor_of(unw_cursor_t* cursor) noexcept { return *std::launder(reinterpret_cast<Cursor*>(cursor)); }

}  // namespace jitunwind
