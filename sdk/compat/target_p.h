// The target of the included headers: the interface is compiled once for each CPU, by libunwind-<target>.h. Its cursor,
// whose memory holds the engine's. Second names for functions of the interface.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/walk/cursor.h"

#include <libunwind.h>

/// An inner namespace of jitunwind, so that one program can link the libraries of several targets.
#define JITUNWIND_COMPAT UNW_PASTE(compat_, UNW_TARGET)

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

inline const Arch& target_arch() noexcept { return arch::UNW_TARGET; }

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

#define JITUNWIND_TEXT2(x) #x
#define JITUNWIND_TEXT(x) JITUNWIND_TEXT2(x)
#define JITUNWIND_ALIAS(name, of) \
  extern __typeof__(of) name __attribute__((alias(JITUNWIND_TEXT(of)), visibility("default")));

/// The name that programs with UNW_LOCAL_ONLY use.
#define JITUNWIND_LOCAL(name) \
  JITUNWIND_ALIAS(UNW_PASTE(UNW_PASTE(UNW_PASTE(_UL, UNW_TARGET), _), name), UNW_ARCH_OBJ(name))

// Functions that only the drop-in libraries call, since those have another function under the usual name.

extern "C" {

/// dwarf_search_unwind_table(), which takes another descriptor there.
extern decltype(UNW_OBJ(dwarf_search_unwind_table)) UNW_OBJ(search_unwind_table);

/// unw_get_proc_name(); if no symbol covers the address, the name of the last symbol before it in its section, which is
/// usually that of other code.
extern decltype(unw_get_proc_name) UNW_OBJ(get_nearest_proc_name);
}
