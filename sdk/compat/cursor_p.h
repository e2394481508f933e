// The memory of libunwind's cursor holds the engine's cursor.
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

/// A caller's buffer for a name, empty at first. A buffer without room is replaced by a private one.
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

/// False: the cursor is all zeros, as most programs' cursors are before they are initialised.
inline bool is_made(unw_cursor_t* cursor) noexcept { return cursor_of(cursor).is_made(); }

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
