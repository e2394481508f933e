// The calling thread's known stack, which walks of addresses and throws need not probe again.
#pragma once

#include <atomic>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The part of the calling thread's stack that was found readable before, up to the stack's upper end. It stays
/// readable as long as the thread runs, unless the program unmaps pages of it. Code that relies on the range then
/// crashes, until somebody notices. Cursors do not rely on it, and they notice.
///
/// The thread and handlers that interrupt it write the range. They write `end` first, so the range is empty in between.
struct KnownStack {
  std::atomic<Addr> begin{~Addr{0}};
  std::atomic<Addr> end{0};
  std::atomic<Addr> gap{0};           ///< an unreadable page between an SP and the stack's end
  std::atomic<std::uint64_t> age{0};  ///< current_age before the stack was probed
  std::atomic<bool> is_learning{false};

  enum class Thread : unsigned char { unknown, main, other };
  std::atomic<Thread> thread{Thread::unknown};

  /// Counts how often all threads' stacks were forgotten.
  static constinit std::atomic<std::uint64_t> current_age;

  /// The range is empty when nothing is known. Signal-safe.
  AddrRange range() const noexcept {
    if (age.load(std::memory_order_relaxed) != current_age.load(std::memory_order_acquire)) return {};
    return {begin.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed)};
  }
  void forget() noexcept {
    begin.store(~Addr{0}, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  /// Clears all that is known. Facts that are learned from now on were probed at `new_age` or later.
  void begin_again(std::uint64_t new_age) noexcept {
    forget();
    gap.store(0, std::memory_order_relaxed);
    age.store(new_age, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
};
extern constinit thread_local KnownStack thread_stack;

/// Returns the known stack after probing the pages around `sp`: those between `sp` and the known part, or the upper
/// end. The range is empty, after hardly any probe, when `sp` is on another stack (sigaltstack, fibers) or below the
/// calling function's frame. Signal-safe.
AddrRange learn_stack(Addr sp) noexcept;

/// Precondition: `sp` is an SP of the calling thread, perhaps a former one on the same stack.
[[gnu::hot]] inline AddrRange known_stack(Addr sp) noexcept {
  const AddrRange known = thread_stack.range();
  return known.contains(sp) ? known : learn_stack(sp);
}

/// Invalidates what all threads know of their stacks; they learn it anew. Signal-safe, thread-safe.
void forget_known_stacks() noexcept;

/// Returns the page of the calling function's stack that a walk from `sp` need not probe. Functions are running on it
/// right now. The range is empty unless `sp` is on this page or the next one. Signal-safe.
AddrRange stack_in_use(Addr sp) noexcept;

/// Probes adjacent pages from `page` on, two by one system call. Returns the first page that cannot be read, at most
/// `end`. Signal-safe.
Addr first_unreadable_page(Addr page, Addr end) noexcept;

}  // namespace jitunwind
