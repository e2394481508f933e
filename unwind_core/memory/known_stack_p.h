// Which memory is the calling thread's stack, so that walks need not probe it again.
#pragma once

#include <atomic>

#include "unwind_core/address.h"

namespace jitunwind {

/// The part of the calling thread's stack that was found readable before, up to the stack's upper end. It stays
/// readable for as long as the thread runs.
///
/// Written by the thread and by handlers that interrupt it: `end` first, so that what is seen between the two is empty.
struct KnownStack {
  std::atomic<Addr> begin{~Addr{0}};
  std::atomic<Addr> end{0};
  std::atomic<Addr> gap{0};  ///< a page between an SP and the stack's end that cannot be read

  enum class Thread : unsigned char { unknown, main, other };
  std::atomic<Thread> thread{Thread::unknown};

  /// Empty where nothing is known. Signal-safe.
  AddrRange range() const noexcept {
    return {begin.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed)};
  }
};
extern constinit thread_local KnownStack thread_stack;

/// The same after a look at what is around `sp`: what lies between it and the known part, or the upper end, is probed.
/// Empty, and as good as nothing was probed, where `sp` is on another stack (sigaltstack, fibers). Signal-safe.
AddrRange learn_stack(Addr sp) noexcept;

/// Precondition: `sp` is an SP of the calling thread, perhaps a former one on the same stack.
inline AddrRange known_stack(Addr sp) noexcept {
  const AddrRange known = thread_stack.range();
  return known.contains(sp) ? known : learn_stack(sp);
}

/// Pages from `page` on, in one piece, that can be read: returns the first that cannot, at most `end`. Signal-safe.
Addr first_unreadable_page(Addr page, Addr end) noexcept;

}  // namespace jitunwind
