// A thread's stack is one mapping that ends with something of the thread's: with glibc its thread control block, in the
// main thread the strings that the kernel put there (execve(2)). What can be read without a gap from an SP up to there
// is that stack. Guard pages, which every other neighbour has below or above it, are gaps.
#include "unwind_core/memory/known_stack_p.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind_core/errno_keeper_p.h"
#include "unwind_core/page_p.h"

namespace jitunwind {

constinit thread_local KnownStack thread_stack;

namespace {

/// Farther from SP nothing is looked for: a page costs a system call, if only once a thread.
constexpr Addr k_farthest = Addr{8} << 20;

KnownStack::Thread kind_of_thread() noexcept {
  using Thread = KnownStack::Thread;
  const Thread known = thread_stack.thread.load(std::memory_order_relaxed);
  if (known != Thread::unknown) return known;
  const ErrnoKeeper keeper;
  const Thread found = ::syscall(SYS_getpid) == ::syscall(SYS_gettid) ? Thread::main : Thread::other;
  thread_stack.thread.store(found, std::memory_order_relaxed);
  return found;
}

/// 0: too far. The main thread's control block is elsewhere, and what is below that is anybody's.
Addr end_of_stack(Addr sp) noexcept {
  const bool is_main = kind_of_thread() == KnownStack::Thread::main;
  const Addr mark = is_main ? ::getauxval(AT_EXECFN) : static_cast<Addr>(pthread_self());
  return mark > sp && mark - sp < k_farthest ? page_of(mark) + k_page_size : 0;
}

}  // namespace

[[gnu::hot]] AddrRange learn_stack(Addr sp) noexcept {
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
