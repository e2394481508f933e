// A thread's stack is one mapping, at whose end lies an object of the thread. The object is glibc's thread control
// block, or in the main thread the strings that the kernel put there (execve(2)). Memory that can be read without a gap
// from an SP up to that object is therefore the stack. All other neighbours have guard pages, which are gaps.
//
// Known stacks are valid until somebody has a reason to doubt them. One number for all threads counts these occasions.
// It is read before the first page is probed.
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

/// Marks a thread that is learning its stack. A handler that interrupts it does not learn, because the interrupted code
/// would overwrite the result.
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

/// Limits the distance from SP. Each page costs a system call, though only once a thread.
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

/// Returns 0 when the end is too far away. The main thread's control block is not on its stack, so the block does not
/// mark the stack's end.
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
  // An SP below this function's frame belongs to another thread's context. That thread's stack is the next mapping, and
  // goes when the thread does.
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
  // The compiler saves the caller's frame pointer in this frame, so the page has just been written to.
  const Addr page = page_of(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  const bool is_near = sp >= page && sp - page < 2 * k_page_size;
  return is_near ? AddrRange{page, page + k_page_size} : AddrRange{};
}

}  // namespace jitunwind
