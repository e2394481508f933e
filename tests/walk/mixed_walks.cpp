#include "tests/walk/mixed_walks.h"

#include <libunwind.h>
#include <uwx_self.h>

#include <alloca.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

// void* frame(void* (*f)(void*), void* argument): all registers that calls preserve hold other values during the call.
// The frame pointer looks like a place on the stack.
asm(R"(
    .text
    .type jitunwind_test_other_registers, @function
jitunwind_test_other_registers:
    .cfi_startproc
    push %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbp, -16
    push %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_offset %rbx, -24
    push %r12
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r12, -32
    push %r13
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r13, -40
    push %r14
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r14, -48
    push %r15
    .cfi_adjust_cfa_offset 8
    .cfi_offset %r15, -56
    sub $40, %rsp
    .cfi_adjust_cfa_offset 40
    mov %rdi, %rax
    mov %rsi, %rdi
    lea 8(%rsp), %rbp
    lea 16(%rbp), %rbx
    mov %rsi, %r12
    xor %r13d, %r13d
    not %r14
    mov %rsp, %r15
    call *%rax
    add $40, %rsp
    .cfi_adjust_cfa_offset -40
    pop %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r15
    pop %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r14
    pop %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r13
    pop %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore %r12
    pop %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbx
    pop %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore %rbp
    ret
    .cfi_endproc
    .size jitunwind_test_other_registers, . - jitunwind_test_other_registers
)");
extern "C" void* jitunwind_test_other_registers(void* (*f)(void*), void* argument);

namespace jitunwind::test {
namespace {

constexpr std::size_t k_most_addresses = 512;
constexpr std::size_t k_jit_frames = 12;
constexpr std::size_t k_deepest = 24;
constexpr std::size_t k_most_huge = 3;
constexpr std::size_t k_huge = 700 << 10;  // bytes: more than a compact row has room for
constexpr std::size_t k_other_stack = 32 << 20;
constexpr long k_timer_delay = 1'000'000;  // ns

enum Kind : unsigned {
  plain,
  variable,
  realigned,
  of_a_page,
  huge,
  other_registers,
  through_libc,
  in_signal,
  in_signal_elsewhere,
  k_static_kinds
};

// ThreadSanitizer runs handlers later than the kernel does, passes them a stale context, and has its own frames below
// them: they are plain calls there.
#ifdef __SANITIZE_THREAD__
constexpr bool k_has_signals = false;
#else
constexpr bool k_has_signals = true;
#endif

struct Counters {
  std::atomic<std::size_t> compared{0}, in_handlers{0}, by_timer{0}, frames{0}, deepest{0}, different{0};
  std::array<char, 256> first_difference{};
};
Counters counters;

void note_difference(const char* way, std::size_t frame, Addr slow, Addr other) {
  if (counters.different.fetch_add(1) != 0) return;
  std::snprintf(counters.first_difference.data(), counters.first_difference.size(),
                "%s, frame %zu: 0x%" PRIx64 " instead of 0x%" PRIx64, way, frame, other, slow);
}

/// A list of addresses that a handler can use.
struct Listed {
  std::array<void*, k_most_addresses> addresses;
  std::size_t count = 0;

  Addr at(std::size_t i) const { return i < count ? reinterpret_cast<std::uintptr_t>(addresses[i]) : 0; }
};

void expect_same(const char* way, const Listed& slow, const Listed& other, std::size_t first = 0) {
  for (std::size_t i = first; i < std::max(slow.count, other.count); ++i)
    if (slow.at(i) != other.at(i)) return note_difference(way, i, slow.at(i), other.at(i));
}

bool has_registers_of(const Cursor& slow, const Cursor& fast, std::size_t frame) {
  for (const RegisterInfo& reg : slow.space().arch.registers) {
    if (reg.column < 0) continue;
    const auto by_slow = slow.registers().get(reg.column), by_fast = fast.registers().get(reg.column);
    if (by_slow == by_fast && slow.registers().location(reg.column) == fast.registers().location(reg.column)) continue;
    note_difference(reg.name, frame, by_slow.value_or(0), by_fast.value_or(0));
    return false;
  }
  return true;
}

/// Compares two cursors side by side, with all registers of every frame. Fills `slow`.
void compare_steps(const RegisterFile& registers, Cursor::Top top, Listed& list) {
  Cursor slow(local_space_without_kept_rows(), registers, top);
  Cursor fast(local_space(), registers, top);
  for (list.count = 0; list.count < k_most_addresses;) {
    const std::size_t frame = list.count;
    list.addresses[list.count++] = reinterpret_cast<void*>(slow.pc());
    if (!has_registers_of(slow, fast, frame)) return;
    const auto moved = slow.step();
    const auto moved_fast = fast.step();
    const bool on = moved && *moved, fast_on = moved_fast && *moved_fast;
    if (on != fast_on || slow.stop_reason() != fast.stop_reason())
      return note_difference("end", frame, static_cast<Addr>(slow.stop_reason()),
                             static_cast<Addr>(fast.stop_reason()));
    if (!on) break;
  }
}

void note_deepest(std::size_t depth) {
  std::size_t before = counters.deepest.load();
  while (before < depth && !counters.deepest.compare_exchange_weak(before, depth)) {
  }
}

/// Walks in every way from a context. Allocates nothing.
void compare_from(const void* context, Cursor::Top top, Listed& slow) {
  compare_steps(registers_from_ucontext(context, local_space().arch), top, slow);
  Listed listed;
  listed.count = backtrace(context, top, listed.addresses);
  expect_same("backtrace", slow, listed);
  ++counters.compared;
  counters.frames += slow.count;
  note_deepest(slow.count);
}

/// Walks by Unwind Express, in the engine's own space and through callbacks that ask it for everything.
class UwxWalks {
 public:
  UwxWalks() noexcept {
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      envs_[i] = uwx_init();
      infos_[i] = uwx_self_init_info(envs_[i]);
      const std::intptr_t token = reinterpret_cast<std::intptr_t>(infos_[i]);
      (void)uwx_register_callbacks(envs_[i], token, i == 0 ? &uwx_self_copyin : &copyin,
                                   i == 0 ? &uwx_self_lookupip : &lookupip);
    }
  }
  ~UwxWalks() {
    for (std::size_t i = 0; i < envs_.size(); ++i) {
      (void)uwx_self_free_info(infos_[i]);
      (void)uwx_free(envs_[i]);
    }
  }
  UwxWalks(const UwxWalks&) = delete;
  UwxWalks& operator=(const UwxWalks&) = delete;

  /// Walks from the calling function. An environment serves one walk at a time, so nothing happens if a signal has
  /// interrupted one.
  [[gnu::always_inline]] void compare(const Listed& slow) {
    if (busy_) return;
    busy_ = true;
    // Each word of the stack is a system call for callbacks.
    const std::size_t ways = ++walks_ % 8 == 0 ? 2 : 1;
    for (std::size_t i = 0; i < ways; ++i) {
      if (uwx_self_init_context(envs_[i]) != UWX_OK) note_difference("uwx_self_init_context", 0, 0, i);
      walk_on(i, slow);
    }
    busy_ = false;
  }

 private:
  void walk_on(std::size_t i, const Listed& slow) {
    Listed listed;
    int status = UWX_OK;
    while (status == UWX_OK && listed.count < k_most_addresses) {
      std::uint64_t ip = 0;
      (void)uwx_get_reg(envs_[i], UWX_REG_IP, &ip);
      listed.addresses[listed.count++] = reinterpret_cast<void*>(ip);
      status = uwx_step(envs_[i]);
      if (status == UWX_ABI_FRAME) status = uwx_self_do_context_frame(envs_[i], infos_[i]);
    }
    const char* const way = i == 0 ? "uwx" : "uwx by callbacks";
    expect_same(way, slow, listed, 1);
    if (status != UWX_BOTTOM && listed.count < k_most_addresses)
      note_difference(way, listed.count, UWX_BOTTOM, static_cast<Addr>(status));
  }

  static int copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
    return uwx_self_copyin(request, loc, rem, len, tok);
  }
  static int lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
    return uwx_self_lookupip(request, ip, tok, resultp);
  }

  std::array<uwx_env*, 2> envs_;
  std::array<uwx_self_info*, 2> infos_;
  unsigned walks_ = 0;
  bool busy_ = false;
};
thread_local UwxWalks* uwx_walks = nullptr;

[[gnu::noinline]] void compare_here() {
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Listed slow, listed;
  compare_from(context, Cursor::Top::returned_to, slow);
  // The first address belongs to another call of this function.
  listed.count = static_cast<std::size_t>(unw_backtrace(listed.addresses.data(), k_most_addresses));
  expect_same("unw_backtrace", slow, listed, 1);
  uwx_walks->compare(slow);
}

void compare_interrupted(int, siginfo_t*, void* context) {
  const int saved = errno;
  Listed slow;
  compare_from(context, Cursor::Top::interrupted, slow);
  ++counters.in_handlers;
  errno = saved;
}

/// The thread's timer. It is set anew when the work of a signal is done: a periodic timer leaves no time between two
/// signals if a walk takes longer than a period.
thread_local timer_t timer{};
void set_timer() {
  const itimerspec once{{}, {0, k_timer_delay}};
  ::timer_settime(timer, 0, &once, nullptr);
}

void compare_at_timer(int signal, siginfo_t* info, void* context) {
  ++counters.by_timer;
  compare_interrupted(signal, info, context);
  compare_here();  // through the signal's frame
  set_timer();
}

struct Stack {
  std::vector<unsigned> kinds;  ///< from the outermost one; k_static_kinds and more: a frame made at run time
  std::size_t reached = 0;
  const std::vector<std::unique_ptr<JitFrame>>* frames = nullptr;
  std::mt19937 random;
};

/// Makes successive walks, with some frames more or less.
void compare_sometimes(Stack& stack) {
  const auto choice = stack.random() % 16;
  if (choice < 2) compare_here();
  if (choice == 2 && k_has_signals) (void)::raise(SIGUSR2);
}

void* descend(void* of);

[[gnu::noinline]] void through_plain(Stack& stack) {
  (void)descend(&stack);
  asm volatile("");
}
[[gnu::noinline]] void through_variable(Stack& stack) {
  void* volatile room = ::alloca(16 + 16 * (stack.reached % 7));
  (void)descend(&stack);
  (void)room;
}
[[gnu::noinline]] void through_realigned(Stack& stack) {
  alignas(64) char room[64];
  asm volatile("" ::"r"(room) : "memory");
  (void)descend(&stack);
  asm volatile("" ::"r"(room) : "memory");
}
template <std::size_t k_size>
[[gnu::noinline]] void through_large(Stack& stack) {
  char room[k_size];
  asm volatile("" ::"r"(room) : "memory");
  (void)descend(&stack);
  asm volatile("" ::"r"(room) : "memory");
}

thread_local Stack* of_thread = nullptr;

/// Calls through frames of the C library.
[[gnu::noinline]] void through_sorting(Stack&) {
  int two[2] = {0, 1};
  bool done = false;
  thread_local bool* done_once = nullptr;
  bool* const outer = std::exchange(done_once, &done);
  std::qsort(two, 2, sizeof two[0], [](const void*, const void*) {
    if (!std::exchange(*done_once, true)) (void)descend(of_thread);
    return 0;
  });
  done_once = outer;
}

[[gnu::noinline]] void through_signal(Stack& stack, int signal) {
  if (!k_has_signals) return through_plain(stack);
  (void)::raise(signal);
  asm volatile("");
}

void go_on(Stack& stack, unsigned kind) {
  switch (kind) {
    case plain:
      return through_plain(stack);
    case variable:
      return through_variable(stack);
    case realigned:
      return through_realigned(stack);
    case of_a_page:
      return through_large<5000>(stack);
    case huge:
      return through_large<k_huge>(stack);
    case other_registers:
      (void)jitunwind_test_other_registers(descend, &stack);
      return;
    case through_libc:
      return through_sorting(stack);
    case in_signal:
      return through_signal(stack, SIGUSR1);
    case in_signal_elsewhere:
      return through_signal(stack, SIGURG);
    default:
      (void)(*(*stack.frames)[kind - k_static_kinds])(descend, &stack);
  }
}

void* descend(void* of) {
  Stack& stack = *static_cast<Stack*>(of);
  if (stack.reached == stack.kinds.size()) {
    compare_here();
    return nullptr;
  }
  const unsigned kind = stack.kinds[stack.reached++];
  compare_sometimes(stack);
  go_on(stack, kind);
  compare_sometimes(stack);
  return nullptr;
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
  if (::sigaction(signal, &action, nullptr) != 0) throw std::runtime_error("sigaction");
}

void handle_signals() {
  const auto go_down = [](int, siginfo_t*, void*) { (void)descend(of_thread); };
  handle(SIGUSR1, go_down, SA_NODEFER);
  handle(SIGURG, go_down, SA_NODEFER | SA_ONSTACK);
  handle(SIGUSR2, &compare_interrupted, SA_NODEFER);
  handle(SIGPROF, &compare_at_timer, 0);
}

/// A stack for signals, and a timer's signals, of this thread.
class ThreadSignals {
 public:
  ThreadSignals() {
    memory_ = ::mmap(nullptr, k_other_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap");
    const stack_t stack{memory_, 0, k_other_stack};
    if (::sigaltstack(&stack, &before_) != 0) throw std::runtime_error("sigaltstack");
    if (!k_has_signals) return;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) throw std::runtime_error("timer_create");
    set_timer();
  }
  ~ThreadSignals() {
    if (k_has_signals) ::timer_delete(timer);
    ::sigaltstack(&before_, nullptr);
    ::munmap(memory_, k_other_stack);
  }
  ThreadSignals(const ThreadSignals&) = delete;
  ThreadSignals& operator=(const ThreadSignals&) = delete;

 private:
  void* memory_ = nullptr;
  stack_t before_{};
};

std::vector<unsigned> random_kinds(std::mt19937& random) {
  std::vector<unsigned> kinds(random() % k_deepest);
  std::size_t huge_ones = 0;
  for (unsigned& kind : kinds) {
    kind = static_cast<unsigned>(random() % (k_static_kinds + k_jit_frames));
    if (kind == huge && ++huge_ones > k_most_huge) kind = plain;
  }
  return kinds;
}

/// Frames made at run time come and go between the stacks, at the same addresses.
void walk_stacks(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<JitFrame>> frames;
  for (std::size_t i = 0; i < k_jit_frames; ++i) frames.push_back(std::make_unique<JitFrame>());
  UwxWalks walks;
  uwx_walks = &walks;
  const ThreadSignals signals;
  for (std::size_t i = 0; i < count; ++i) {
    auto& replaced = frames[random() % frames.size()];
    replaced.reset();
    replaced = std::make_unique<JitFrame>();
    Stack stack{random_kinds(random), 0, &frames, std::mt19937(static_cast<unsigned>(random()))};
    of_thread = &stack;
    (void)descend(&stack);
  }
}

}  // namespace

std::string MixedWalkFigures::text() const {
  return std::to_string(stacks) + " stacks, " + std::to_string(compared) + " walks (" + std::to_string(in_handlers) +
         " of what a signal interrupted, " + std::to_string(by_timer) + " of these by a timer), " +
         std::to_string(frames) + " frames, up to " + std::to_string(deepest) + " deep; different " +
         std::to_string(different) + (different == 0 ? "" : ": " + first_difference);
}

MixedWalkFigures walk_mixed_stacks(std::size_t stacks) {
  handle_signals();
  std::thread other([&] { walk_stacks(stacks, 2); });
  walk_stacks(stacks, 1);
  other.join();
  return {2 * stacks,      counters.compared, counters.in_handlers, counters.by_timer,
          counters.frames, counters.deepest,  counters.different,   counters.first_difference.data()};
}

}  // namespace jitunwind::test
