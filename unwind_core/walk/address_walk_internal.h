// A walk that keeps nothing of a frame but its address: pc, SP and frame pointer are enough for most rows.
#pragma once

#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {

/// The frame where a walk of addresses begins.
struct WalkStart {
  CodeAddress address;
  Addr sp = 0;
  Addr fp = 0;
  const void* ucontext = nullptr;  ///< that it is of; null: a frame of a caller of the walk's

  Cursor::Top top() const noexcept {
    return address.is_return_address() ? Cursor::Top::returned_to : Cursor::Top::interrupted;
  }
};

enum class WalkPart { whole, callers };

/// Writes the addresses of the frame where the walk begins (unless only its callers are wanted) and of its callers, as
/// many as fit. Returns how many. They are those that Cursor::step() finds. A space without kept rows is walked by a
/// cursor. Precondition: `space` is of this process, and the start is on a stack of the calling thread. Signal-safe,
/// thread-safe.
std::size_t walk_addresses(const AddressSpace& space, const WalkStart& start, WalkPart part,
                           std::span<void*> into) noexcept;
/// Writes the same by a cursor, which goes along, in any address space. The function is exported: libunwind's interface
/// is in another library.
[[gnu::visibility("default")]] std::size_t list_addresses(Cursor& cursor, WalkPart part,
                                                          std::span<void*> into) noexcept;
/// A cursor at the start of a walk, with all registers. They come from the ucontext_t, or from a walk out of this
/// library's own frames, which `space` must know. `proven` is the part of the stack that is known to be readable.
Cursor cursor_at_start(const AddressSpace& space, const WalkStart& start, AddrRange proven) noexcept;

}  // namespace jitunwind
