// Which memory is the calling thread's stack, so that walks of addresses and throws need not probe it again.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The part of the calling thread's stack that was found readable before, up to the stack's upper end. It stays
/// readable for as long as the thread runs, unless the program takes pages of it away. Who relies on this range crashes
/// then, until somebody has noticed; cursors do not rely on it, and notice.
///
/// Written by the thread and by handlers that interrupt it: `end` first, so that what is seen between the two is empty.
struct KnownStack {
  std::atomic<Addr> begin{~Addr{0}};
  std::atomic<Addr> end{0};
  std::atomic<Addr> gap{0};           ///< a page between an SP and the stack's end that cannot be read
  std::atomic<std::uint64_t> age{0};  ///< current_age before it was probed
  std::atomic<bool> is_learning{false};

  enum class Thread : unsigned char { unknown, main, other };
  std::atomic<Thread> thread{Thread::unknown};

  /// Counts how often all threads' stacks were forgotten.
  static constinit std::atomic<std::uint64_t> current_age;

  /// Empty where nothing is known. Signal-safe.
  AddrRange range() const noexcept {
    if (age.load(std::memory_order_relaxed) != current_age.load(std::memory_order_acquire)) return {};
    return {begin.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed)};
  }
  void forget() noexcept {
    begin.store(~Addr{0}, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// Knows nothing, and what is learned now was probed at `new_age` or later.
  void begin_again(std::uint64_t new_age) noexcept {
    forget();
    gap.store(0, std::memory_order_relaxed);
    age.store(new_age, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};
extern constinit thread_local KnownStack thread_stack;

/// The same after a look at what is around `sp`: what lies between it and the known part, or the upper end, is probed.
/// Empty, and as good as nothing was probed, where `sp` is on another stack (sigaltstack, fibers), or below the calling
/// function's frame. Signal-safe.
AddrRange learn_stack(Addr sp) noexcept;

/// Precondition: `sp` is an SP of the calling thread, perhaps a former one on the same stack.
inline AddrRange known_stack(Addr sp) noexcept {
  const AddrRange known = thread_stack.range();
  return known.contains(sp) ? known : learn_stack(sp);
}

/// What any thread knows of its stack counts no more, and is learned anew. Signal-safe, thread-safe.
void forget_known_stacks() noexcept;

/// Of the calling function's stack what a walk from `sp` need not probe: the page on which functions are running right
/// now, where `sp` is on it or on the next one. Empty: the walk is on another stack, or far away. Signal-safe.
AddrRange stack_in_use(Addr sp) noexcept;

/// Pages from `page` on, in one piece, that can be read: returns the first that cannot, at most `end`. Two pages are
/// probed by one system call. Signal-safe.
Addr first_unreadable_page(Addr page, Addr end) noexcept;

}  // namespace jitunwind
