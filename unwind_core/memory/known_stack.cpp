// A thread's stack is one mapping that ends with something of the thread's: with glibc its thread control block, in the
// main thread the strings that the kernel put there (execve(2)). What can be read without a gap from an SP up to there
// is that stack. Guard pages, which every other neighbour has below or above it, are gaps.
#include "unwind_core/memory/known_stack_p.h"

#include <pthread.h>
#include <sys/auxv.h>

#include "unwind_core/page_p.h"

namespace jitunwind {
namespace {

/// Farther from SP nothing is looked for: a page costs a system call, if only once a thread.
constexpr Addr k_farthest = Addr{8} << 20;

/// 0: too far.
Addr end_of_stack(Addr sp) noexcept {
  for (const Addr mark : {static_cast<Addr>(pthread_self()), static_cast<Addr>(::getauxval(AT_EXECFN))})
    if (mark > sp && mark - sp < k_farthest) return page_of(mark) + k_page_size;
  return 0;
}

}  // namespace

constinit thread_local KnownStack thread_stack;

AddrRange learn_stack(Addr sp) noexcept {
  KnownStack& known = thread_stack;
  const AddrRange before = known.range();
  const bool is_below = !before.empty() && sp < before.begin && before.begin - sp < k_farthest;
  const Addr end = is_below ? before.begin : end_of_stack(sp);
  const Addr gap = known.gap.load(std::memory_order_relaxed);
  if (end == 0 || (gap >= sp && gap < end)) return {};
  const Addr reached = first_unreadable_page(page_of(sp), end);
  if (reached != end) {
    known.gap.store(reached, std::memory_order_relaxed);
    return {};
  }
  if (!is_below) {
    known.begin.store(~Addr{0}, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    known.end.store(end, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  known.begin.store(page_of(sp), std::memory_order_relaxed);
  return known.range();
}

}  // namespace jitunwind
