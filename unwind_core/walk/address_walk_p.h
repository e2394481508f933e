// A walk that keeps nothing of a frame but its address: pc, SP and frame pointer are enough for most rows.
#pragma once

#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {

/// Where such a walk begins.
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

/// The addresses of the frame where the walk begins, unless its callers only are wanted, and of these, as many as fit.
/// Returns how many. The same as Cursor::step() finds. Precondition: `space` is of this process, and what begins there
/// is on the calling thread's stacks. By a cursor where the space keeps no rows. Signal-safe, thread-safe.
std::size_t walk_addresses(const AddressSpace& space, const WalkStart& start, WalkPart part,
                           std::span<void*> into) noexcept;
/// The same from where the cursor is, which goes along, in any address space. libunwind's interface is in another
/// library.
[[gnu::visibility("default")]] std::size_t list_addresses(Cursor& cursor, WalkPart part,
                                                          std::span<void*> into) noexcept;
/// Where such a walk begins, with all registers: of the ucontext_t, or out of this library's own frames, which `space`
/// must know. `proven`: of the stack, what is known to be readable.
Cursor cursor_at_start(const AddressSpace& space, const WalkStart& start, AddrRange proven) noexcept;

}  // namespace jitunwind
