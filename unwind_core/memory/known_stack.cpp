// A thread's stack is one mapping that ends with something of the thread's: with glibc its thread control block, in the
// main thread the strings that the kernel put there (execve(2)). What can be read without a gap from an SP up to there
// is that stack. Guard pages, which every other neighbour has below or above it, are gaps.
//
// What was learned counts for as long as nobody has a reason to doubt it: under one number for all threads, which was
// read before the first page was probed.
#include "jitunwind/unwind_core/memory/known_stack_internal.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

constinit thread_local KnownStack thread_stack;
constinit std::atomic<std::uint64_t> KnownStack::current_age{1};

namespace {

/// A handler that interrupts learning does without: what it would learn, the interrupted learner would write over.
class Learning {
 public:
  explicit Learning(KnownStack& stack) noexcept
      : stack_(stack), is_first_(!stack.is_learning.load(std::memory_order_relaxed)) {
    set(true);
  }
  ~Learning() {
    if (is_first_) set(false);
  }
  Learning(const Learning&) = delete;
  Learning& operator=(const Learning&) = delete;
  bool is_first() const noexcept { return is_first_; }

 private:
  void set(bool learning) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    stack_.is_learning.store(learning, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  KnownStack& stack_;
  bool is_first_;
};

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
  const Learning learning(known);
  if (!learning.is_first()) return {};
  const std::uint64_t age = KnownStack::current_age.load(std::memory_order_acquire);
  if (known.age.load(std::memory_order_relaxed) != age) known.begin_again(age);
  const AddrRange before = known.range();
  const bool is_below = !before.empty() && sp < before.begin && before.begin - sp < k_farthest;
  const Addr end = is_below ? before.begin : end_of_stack(sp);
  const Addr gap = known.gap.load(std::memory_order_relaxed);
  if (end == 0 || (gap >= page_of(sp) && gap < end)) return {};
  // Below this function's frame nothing is this thread's: another thread's context, whose stack is the next mapping and
  // goes when that thread does.
  const Addr here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (sp < here && here < std::max(end, before.end)) return {};
  const Addr reached = first_unreadable_page(page_of(sp), end);
  if (reached != end) {
    known.gap.store(reached, std::memory_order_relaxed);
    return {};
  }
  if (!is_below) {
    known.forget();
    known.end.store(end, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  known.begin.store(page_of(sp), std::memory_order_relaxed);
  return known.range();
}

void forget_known_stacks() noexcept { KnownStack::current_age.fetch_add(1, std::memory_order_acq_rel); }

[[gnu::noinline]] AddrRange stack_in_use(Addr sp) noexcept {
  // The compiler saves the caller's frame pointer there, so that the page has just been written to.
  const Addr page = page_of(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  const bool is_near = sp >= page && sp - page < 2 * k_page_size;
  return is_near ? AddrRange{page, page + k_page_size} : AddrRange{};
}

}  // namespace jitunwind
