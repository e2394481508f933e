// libunwind's cursor is room for the engine's.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>

#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

static_assert(sizeof(Cursor) <= sizeof(unw_cursor_t) && alignof(Cursor) <= alignof(unw_cursor_t));

/// A caller's buffer for a name, empty at first; where it has no room, one that nobody sees.
class NameBuffer {
 public:
  NameBuffer(char* buffer, std::size_t size) noexcept : into_(size == 0 ? nothing_ : std::span<char>(buffer, size)) {
    into_[0] = '\0';
  }
  NameBuffer(const NameBuffer&) = delete;
  NameBuffer& operator=(const NameBuffer&) = delete;
  operator std::span<char>() const noexcept { return into_; }

 private:
  std::array<char, 1> nothing_;
  std::span<char> into_;
};

inline Cursor& cursor_of(unw_cursor_t* cursor) noexcept { return *std::launder(reinterpret_cast<Cursor*>(cursor)); }

/// False: it is all zeros, which is what most programs have in cursors that were never initialised.
inline bool is_made(unw_cursor_t* cursor) noexcept { return cursor_of(cursor).is_made(); }

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
