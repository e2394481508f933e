#include "jitunwind/unwind_core/memory/small_stack_internal.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

extern "C" void jitunwind_call_on_stack(void (*work)(void*), void* argument, void* stack) noexcept;

namespace jitunwind {
namespace {

/// One mapping that holds, in this order: inaccessible pages, a stack for the work, inaccessible pages, and a stack for
/// handlers of signals that the work causes. This object lies at the upper end of the signal stack.
struct ScratchStack {
  // Sanitizers make frames larger. Only pages that are touched take memory.
  static constexpr std::size_t k_work = std::size_t{256} << 10;
  static constexpr std::size_t k_signals = std::size_t{64} << 10;
  static constexpr std::size_t k_whole = k_largest_page_size + k_work + k_largest_page_size + k_signals;
  static constexpr std::size_t k_alignment = 64;

  /// Lies at the upper end of the stack for work. Its bytes are 0 in a forked child, where no thread is on it.
  struct alignas(k_alignment) Use {
    std::atomic<bool> is_taken;
    std::atomic<Addr> sp_before;
  };

  ScratchStack* next = nullptr;

  std::byte* whole() noexcept { return reinterpret_cast<std::byte*>(this) + k_alignment - k_whole; }
  Use& use() noexcept { return *reinterpret_cast<Use*>(end_of_work()); }
  void* end_of_work() noexcept { return whole() + k_largest_page_size + k_work - sizeof(Use); }
  stack_t signals() noexcept {
    return {.ss_sp = whole() + k_largest_page_size + k_work + k_largest_page_size,
            .ss_flags = 0,
            .ss_size = k_signals - k_alignment};
  }
  bool take() noexcept {
    std::atomic<bool>& is_taken = use().is_taken;
    return !is_taken.load(std::memory_order_relaxed) && !is_taken.exchange(true, std::memory_order_acquire);
  }
  bool holds(Addr sp) noexcept { return sp - reinterpret_cast<std::uintptr_t>(whole()) < k_whole; }
  void give_back() noexcept { use().is_taken.store(false, std::memory_order_release); }
};
static_assert(sizeof(ScratchStack) <= ScratchStack::k_alignment);

/// All scratch stacks. They are never removed from the list.
constinit std::atomic<ScratchStack*> scratch_stacks{nullptr};

/// Returns null when there is no memory.
ScratchStack* make_scratch_stack() noexcept {
  using Scratch = ScratchStack;
  constexpr int k_kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const memory = ::mmap(nullptr, Scratch::k_whole, PROT_NONE, k_kind, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::byte* const work = static_cast<std::byte*>(memory) + k_largest_page_size;
  std::byte* const signals = work + Scratch::k_work + k_largest_page_size;
  constexpr int k_usable = PROT_READ | PROT_WRITE;
  if (::mprotect(work, Scratch::k_work, k_usable) != 0 || ::mprotect(signals, Scratch::k_signals, k_usable) != 0) {
    ::munmap(memory, Scratch::k_whole);
    return nullptr;
  }
  // Kernels before 4.14 lack this advice: a forked child then loses the stacks that were taken at the fork.
  (void)::madvise(work, Scratch::k_work, MADV_WIPEONFORK);
  return new (signals + Scratch::k_signals - Scratch::k_alignment) Scratch;
}

/// Takes a stack that nobody uses. Returns null when there is no memory.
ScratchStack* take_scratch_stack() noexcept {
  ScratchStack* first = scratch_stacks.load(std::memory_order_acquire);
  for (ScratchStack* stack = first; stack; stack = stack->next)
    if (stack->take()) return stack;
  const ErrnoKeeper keeper;
  ScratchStack* const made = make_scratch_stack();
  if (!made) return nullptr;
  (void)made->take();
  made->next = first;
  while (!scratch_stacks.compare_exchange_weak(made->next, made, std::memory_order_acq_rel)) {
  }
  return made;
}

using KernelSignals = std::uint64_t;

/// All signals except those that instructions cause. A handler must see a fault of the work (none is expected), or a
/// system call that the program's sandbox handles.
constexpr KernelSignals from_elsewhere() noexcept {
  KernelSignals signals = ~KernelSignals{0};
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
    signals &= ~(KernelSignals{1} << (number - 1));
  return signals;
}

/// Sets all signals, including those that the C library reserves for itself, which sigprocmask() leaves out.
bool set_mask(int how, const KernelSignals& signals, KernelSignals* before) noexcept {
  const ErrnoKeeper keeper;
  return ::syscall(SYS_rt_sigprocmask, how, &signals, before, sizeof signals) == 0;
}

class SignalsWait {
 public:
  SignalsWait() noexcept : do_wait_(set_mask(SIG_BLOCK, from_elsewhere(), &before_)) {}
  ~SignalsWait() {
    if (do_wait_) (void)set_mask(SIG_SETMASK, before_, nullptr);
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  explicit operator bool() const noexcept { return do_wait_; }

 private:
  KernelSignals before_ = 0;
  bool do_wait_;
};

[[gnu::always_inline]] inline Addr sp_here() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

/// The SP at which the thread began to work with room, while it does. Nested calls then need not ask again. A signal
/// handler on another stack is not within its reach, nor is one on a signal stack inside older frames of this stack.
constinit thread_local std::atomic<Addr> work_begins{0};

class Work {
 public:
  explicit Work(Addr sp) noexcept { work_begins.store(sp, std::memory_order_relaxed); }
  ~Work() { work_begins.store(0, std::memory_order_relaxed); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  static bool is_at(Addr sp) noexcept { return work_begins.load(std::memory_order_relaxed) - sp < k_room / 2; }
};

struct ScratchCall {
  void (*work)(void*);
  void* argument;
  stack_t signals;
};

/// Runs on the scratch stack, because a thread's signal stack cannot be changed while the thread is on it.
void run_on_scratch_stack(void* argument) noexcept {
  ScratchCall& call = *static_cast<ScratchCall*>(argument);
  stack_t own;
  const ErrnoKeeper keeper;
  const bool is_changed = ::sigaltstack(&call.signals, &own) == 0;
  {
    const Work working(sp_here());
    call.work(call.argument);
  }
  if (is_changed) (void)::sigaltstack(&own, nullptr);
}

[[gnu::noinline]] void call_on_scratch_stack(void (*work)(void*), void* argument) noexcept {
  const SignalsWait wait;
  ScratchStack* const stack = wait ? take_scratch_stack() : nullptr;
  if (!stack) return work(argument);
  ScratchCall call{work, argument, stack->signals()};
  stack->use().sp_before.store(sp_here(), std::memory_order_release);
  jitunwind_call_on_stack(&run_on_scratch_stack, &call, stack->end_of_work());
  stack->give_back();
}

/// The walk for which the thread asked the last time, and its SP. A walk on another stack would have a distant SP.
struct Asked {
  std::atomic<const void*> walk{nullptr};
  std::atomic<Addr> sp{0};
  std::atomic<Addr> begun{0};  ///< the SP where begin_walk_with_room() was called the last time

  bool has_room(const void* of, Addr here) const noexcept {
    constexpr Addr k_near = Addr{64} << 10;
    return walk.load(std::memory_order_relaxed) == of &&
           here - sp.load(std::memory_order_relaxed) + k_near < 2 * k_near;
  }
  /// Handlers may interrupt this and note walks of their own.
  void note(const void* of, Addr here) noexcept {
    walk.store(nullptr, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    sp.store(here, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    walk.store(of, std::memory_order_relaxed);
  }
};
constinit thread_local Asked asked;

/// Whether the stack_t at `at` is the one that the kernel saved for a handler on a stack with SS_AUTODISARM. The kernel
/// reports no such stack while the handler runs (kernel/signal.c, sas_ss_reset()), but saves it in the handler's
/// ucontext_t, on that very stack.
JITUNWIND_RAW_ACCESS bool is_disarmed_stack(Addr at, Addr sp) noexcept {
  constexpr std::uint32_t k_disarms = std::uint32_t{1} << 31;  // SS_AUTODISARM, include/uapi/linux/signal.h
  const auto flags = static_cast<std::uint32_t>(raw_word(at + offsetof(stack_t, ss_flags)));
  if ((flags & ~std::uint32_t{SS_ONSTACK}) != k_disarms) return false;
  const AddrRange stack{raw_word(at), raw_word(at) + raw_word(at + offsetof(stack_t, ss_size))};
  return stack.contains(sp) && stack.contains(at);
}

/// Finds where the signal stack with SS_AUTODISARM begins that `sp` is on. Searches as many words above `sp` as a small
/// stack has. Returns 0 when `sp` is on no such stack. The thread's own stack is not searched, because words that
/// nobody has written would be read there; to recognise it, it is learned. Elsewhere, as on the stacks of fibers, the
/// search probes two pages.
Addr begin_of_disarmed_stack(Addr sp) noexcept {
  if (known_stack(sp).contains(sp)) return 0;
  constexpr Addr k_word = sizeof(Addr), k_searched = 2 * k_page_size;
  const Addr next_page = page_of(sp) + k_page_size;
  Addr readable = next_page;
  for (Addr at = (sp + k_word - 1) & -k_word; at - sp < k_searched; at += k_word) {
    if (at + sizeof(stack_t) > readable) {
      if (readable != next_page) return 0;
      readable = first_unreadable_page(next_page, next_page + k_searched);
      if (readable == next_page) return 0;
    }
    if (is_disarmed_stack(at, sp)) return raw_word(at);
  }
  return 0;
}

/// When a sandbox refuses the system call, there is room as far as anybody knows.
bool has_room(Addr sp, const void* walk) noexcept {
  if (walk && asked.has_room(walk, sp)) return true;
  const ErrnoKeeper keeper;
  stack_t own;
  if (::sigaltstack(nullptr, &own) != 0) return true;
  if (own.ss_flags & SS_ONSTACK) return sp - reinterpret_cast<std::uintptr_t>(own.ss_sp) >= k_room;
  if (own.ss_flags & SS_DISABLE)
    if (const Addr begin = begin_of_disarmed_stack(sp)) return sp - begin >= k_room;
  asked.note(walk, sp);
  return true;
}

}  // namespace

Addr sp_before_room(Addr sp) noexcept {
  for (ScratchStack* stack = scratch_stacks.load(std::memory_order_acquire); stack; stack = stack->next)
    if (stack->holds(sp)) return stack->use().sp_before.load(std::memory_order_acquire);
  return 0;
}

[[gnu::hot]] void begin_walk_with_room(const void* walk, Addr sp) noexcept {
  const bool is_known = asked.walk.load(std::memory_order_relaxed) == walk &&
                        asked.begun.load(std::memory_order_relaxed) == sp && thread_stack.range().contains(sp);
  if (is_known) return;
  asked.begun.store(sp, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  asked.walk.store(nullptr, std::memory_order_relaxed);
}

[[gnu::hot]] void call_with_room(void (*work)(void*), void* argument, const void* walk) noexcept {
  const Addr sp = sp_here();
  if (Work::is_at(sp)) return work(argument);
  if (!has_room(sp, walk)) return call_on_scratch_stack(work, argument);
  const Work working(sp);
  work(argument);
}

}  // namespace jitunwind
