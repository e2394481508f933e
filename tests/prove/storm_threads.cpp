#include "tests/prove/storm_threads.h"

#include <libunwind.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "tests/prove/storm_code.h"
#include "tests/prove/storm_libgcc.h"
#include "tests/support/failing_memory.h"
#include "tests/support/handlers.h"

namespace jitunwind::storm {
namespace {

using test::k_is_sanitized;

#ifdef __SANITIZE_THREAD__            // with which a walk takes longer than a period would
constexpr long k_period = 5'000'000;  // ns
#else
constexpr long k_period = 200'000;
#endif
constexpr std::size_t k_most_frames = 256;
constexpr std::size_t k_handler_stack = 128 << 10;

Counters all_counters;
std::atomic<const char*> first_wrong{nullptr};
constinit thread_local Thread* current = nullptr;
const Arena* arena = nullptr;
unsigned seed = 0;

std::array<std::atomic<Addr>, 1024> walked_addresses;
std::atomic<unsigned> walked_count{0};

bool is_procedure(Addr pc) { return arena->contains(pc); }

using Walk = std::array<Walked, k_most_frames>;

/// The first wrong or short walk, beside the calls that its thread knows.
struct BadWalk {
  std::atomic<bool> is_taken{false};
  Verdict verdict{};
  const char* by = "";
  const char* thread = "";
  const char* doing = "";
  bool is_unwinding = false;
  Addr interrupted = 0;
  Walk found{};
  std::size_t count = 0;
  std::array<Call, 256> calls{};
  std::size_t call_count = 0, certain = 0;
};
BadWalk bad_walk;

void note_bad(const Thread& thread, Verdict verdict, const char* by, std::span<const Walked> walk, Addr interrupted) {
  if (bad_walk.is_taken.exchange(true)) return;
  bad_walk.verdict = verdict;
  bad_walk.by = by;
  bad_walk.thread = thread.name;
  bad_walk.doing = thread.doing;
  bad_walk.is_unwinding = thread.shadow.certain != nullptr;
  bad_walk.interrupted = interrupted;
  bad_walk.count = walk.size();
  std::copy(walk.begin(), walk.end(), bad_walk.found.begin());
  bad_walk.calls = thread.shadow.calls;
  bad_walk.call_count = thread.shadow.all().size();
  bad_walk.certain = thread.shadow.count_of_certain();
}

/// Returns whether a procedure's name is the registered one.
bool is_named(unw_cursor_t& cursor, Addr pc) {
  if (!is_procedure(pc)) return true;
  std::array<char, 64> name{};
  return unw_get_proc_name(&cursor, name.data(), name.size(), nullptr) == 0 &&
         std::strncmp(name.data(), "storm_", 6) == 0;
}

std::size_t steps(unw_cursor_t& cursor, Walk& into, bool with_names) {
  std::size_t count = 0;
  do {
    unw_word_t pc = 0, sp = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    into[count++] = {pc, sp};
    if (with_names && !is_named(cursor, pc)) count_wrong("a frame has no name, or another one");
  } while (count < into.size() && unw_step(&cursor) > 0);
  return count;
}

std::size_t listed(std::span<void* const> addresses, int count, Walk& into) {
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    into[at] = {reinterpret_cast<std::uintptr_t>(addresses[at]), 0};
  }
  return static_cast<std::size_t>(count);
}

void take(Thread& thread, const char* by, std::span<const Walked> walk, Addr interrupted) {
  all_counters.walks.fetch_add(1, std::memory_order_relaxed);
  all_counters.frames.fetch_add(walk.size(), std::memory_order_relaxed);
  if (!walk.empty()) {
    const unsigned at = walked_count.fetch_add(1, std::memory_order_relaxed);
    walked_addresses[at % walked_addresses.size()].store(walk[at % walk.size()].pc, std::memory_order_relaxed);
  }
  if (interrupted != 0 && is_where_libgcc_lands(interrupted)) {
    ++all_counters.where_libgcc_lands;
    return;
  }
  const Verdict verdict = judge(thread.shadow, walk, interrupted, &is_procedure);
  if (verdict == Verdict::right) return;
  note_bad(thread, verdict, by, walk, interrupted);
  ++(verdict == Verdict::wrong ? all_counters.wrong : all_counters.too_short);
}

void on_signal(int, siginfo_t*, void* context) {
  const int saved = errno;
  JITUNWIND_HANDLER_CONTEXT(from, context);
  Thread* const self = current;
  if (self != nullptr && self->shadow.is_kept) {
    const bool is_told = decltype(from)::k_kind == UNW_INIT_SIGNAL_FRAME;
    unw_word_t interrupted = 0;
    unw_cursor_t cursor;
    Walk walk;
    std::array<void*, k_most_frames> addresses;
    if (is_told) interrupted = static_cast<unw_word_t>(from.context->uc_mcontext.gregs[REG_RIP]);
    const unsigned way = self->ways++;
    if (way % 4 == 0) {
      unw_init_local2(&cursor, from.context, from.k_kind);
      // While libgcc_s lands, its own registers belong to another frame: take() judges neither such a walk nor its
      // names.
      const bool with_names = way % 32 == 0 && !is_where_libgcc_lands(interrupted);
      take(*self, "steps from the context", {walk.data(), steps(cursor, walk, with_names)}, interrupted);
    } else if (way % 4 == 1) {
      const int count = unw_backtrace2(addresses.data(), k_most_frames, from.context, from.k_kind);
      take(*self, "backtrace from the context", {walk.data(), listed(addresses, count, walk)}, interrupted);
    } else if (way % 4 == 2) {
      const int count = unw_backtrace(addresses.data(), k_most_frames);
      take(*self, "backtrace in the handler", {walk.data(), listed(addresses, count, walk)}, interrupted);
    } else {
      unw_context_t here;
      unw_getcontext(&here);
      unw_init_local(&cursor, &here);
      take(*self, "steps in the handler", {walk.data(), steps(cursor, walk, false)}, interrupted);
    }
  }
  errno = saved;
}

/// Formats without an allocation, for handlers.
template <class... Arguments>
void say(const char* format, Arguments... arguments) noexcept {
  std::array<char, 512> text;
  const int length = std::snprintf(text.data(), text.size(), format, arguments...);
  if (length > 0)
    (void)!::write(STDERR_FILENO, text.data(), std::min(static_cast<std::size_t>(length), text.size() - 1));
}

void say_address(const char* before, Addr pc) noexcept {
  Dl_info found{};
  if (arena->contains(pc)) return say("%s %#lx (made at run time)\n", before, pc);
  if (::dladdr(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pc)), &found) == 0)
    return say("%s %#lx\n", before, pc);
  say("%s %#lx %s+%#lx %s\n", before, pc, found.dli_fname, pc - reinterpret_cast<std::uintptr_t>(found.dli_fbase),
      found.dli_sname != nullptr ? found.dli_sname : "");
}

void say_own_walk() noexcept {
  std::array<void*, 64> addresses;
  const int count = unw_backtrace(addresses.data(), static_cast<int>(addresses.size()));
  for (int i = 0; i < count; ++i)
    say_address("   ", reinterpret_cast<std::uintptr_t>(addresses[static_cast<std::size_t>(i)]));
}

void on_crash(int number, siginfo_t* info, void* context) {
  const Thread* const self = current;
  const auto pc = static_cast<Addr>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  say("storm: signal %d at %p in %s, which did %s; --seed %u\n", number, info->si_addr, self ? self->name : "?",
      self ? self->doing.load() : "?", seed);
  say_address("  pc", pc);
  say_own_walk();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_stuck(int, siginfo_t*, void*) { say_own_walk(); }

/// The timer uses CLOCK_MONOTONIC, because clocks of processor time tick 250 times a second at most.
class Timer {
 public:
  Timer() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event._sigev_un._tid = ::gettid();
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) throw std::runtime_error("timer_create");
    const itimerspec period{{0, k_period}, {0, k_period}};
    ::timer_settime(timer_, 0, &period, nullptr);
  }
  ~Timer() { ::timer_delete(timer_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  timer_t timer_{};
};

/// Sets a stack for handlers as long as it lives. A sanitizer has set one of its own, which it removes itself.
class HandlerStack {
 public:
  explicit HandlerStack(bool is_wanted) : is_wanted_(is_wanted) {
    if (!is_wanted) return;
    memory_ = ::mmap(nullptr, k_handler_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const stack_t stack{memory_, 0, k_handler_stack};
    if (memory_ == MAP_FAILED || ::sigaltstack(&stack, &before_) != 0) throw std::runtime_error("sigaltstack");
  }
  ~HandlerStack() {
    if (!is_wanted_) return;
    ::sigaltstack(&before_, nullptr);
    ::munmap(memory_, k_handler_stack);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  bool is_wanted_;
  void* memory_ = nullptr;
  stack_t before_{};
};

/// Keeps the thread's shadow, which begins with the frames of `outer`, from the cursor's caller on.
class KeptShadow {
 public:
  KeptShadow(Thread& thread, unw_cursor_t& outer) : thread_(thread) {
    Shadow& shadow = thread.shadow;
    std::size_t count = 0;
    int moved = 0;
    while ((moved = unw_step(&outer)) > 0) {
      unw_word_t pc = 0, sp = 0;
      unw_get_reg(&outer, UNW_REG_IP, &pc);
      unw_get_reg(&outer, UNW_REG_SP, &sp);
      shadow.calls.at(count++) = {reinterpret_cast<void*>(pc), reinterpret_cast<void*>(sp)};
    }
    if (moved < 0 || count == 0) throw std::runtime_error("the thread's own frames");
    std::reverse(shadow.calls.begin(), shadow.calls.begin() + static_cast<std::ptrdiff_t>(count));
    shadow.top = shadow.base = shadow.calls.data() + count;
    shadow.certain = nullptr;
    thread.id = ::gettid();
    current = &thread;
    in_order();
    shadow.is_kept = true;
  }
  ~KeptShadow() {
    thread_.shadow.is_kept = false;
    in_order();
    current = nullptr;
    thread_.id = 0;
  }
  KeptShadow(const KeptShadow&) = delete;
  KeptShadow& operator=(const KeptShadow&) = delete;

 private:
  Thread& thread_;
};

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  // All signals are blocked, including those that the C library uses itself: a cancellation that arrives in a handler
  // which interrupted a cancellation point would unwind through the handler (glibc's bug 12683).
  std::memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

Counters& counters() noexcept { return all_counters; }

[[gnu::noinline]] void run(Thread& thread, void (*body)(Thread&), bool has_a_handler_stack) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  const HandlerStack stack(has_a_handler_stack);
  const KeptShadow kept(thread, cursor);
  const Timer timer;
  body(thread);
}

[[gnu::noinline]] void judge_own_walk(Thread& thread) {
  Walk walk;
  if (thread.random() % 2 == 0) {
    unw_context_t here;
    unw_cursor_t cursor;
    unw_getcontext(&here);
    unw_init_local(&cursor, &here);
    return take(thread, "steps", {walk.data(), steps(cursor, walk, true)}, 0);
  }
  std::array<void*, k_most_frames> addresses;
  const int count = unw_backtrace(addresses.data(), k_most_frames);
  take(thread, "backtrace", {walk.data(), listed(addresses, count, walk)}, 0);
}

Addr any_walked_address(std::mt19937& random) noexcept {
  return walked_addresses[random() % walked_addresses.size()].load(std::memory_order_relaxed);
}

void install_handlers(unsigned new_seed, const Arena& of) {
  seed = new_seed;
  arena = &of;
  handle(SIGUSR2, &on_signal);
  handle(SIGUSR1, &on_stuck);
  if (k_is_sanitized) return;  // sanitizers say more
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM}) handle(number, &on_crash);
}

void count_wrong(const char* what) noexcept {
  const char* none = nullptr;
  first_wrong.compare_exchange_strong(none, what);
  ++all_counters.wrong;
}

bool print_first_bad_walk() noexcept {
  if (const char* const what = first_wrong) say("wrong, beside walks: %s\n", what);
  if (!bad_walk.is_taken) return false;
  say("%s: %s, in %s, which did %s%s; interrupted at %#lx\n", bad_walk.verdict == Verdict::wrong ? "wrong" : "short",
      bad_walk.by, bad_walk.thread, bad_walk.doing, bad_walk.is_unwinding ? " and unwound" : "", bad_walk.interrupted);
  for (std::size_t i = 0; i < bad_walk.count; ++i) {
    std::array<char, 32> sp;
    std::snprintf(sp.data(), sp.size(), "  found, sp %#lx:", bad_walk.found[i].sp);
    say_address(sp.data(), bad_walk.found[i].pc);
  }
  say("  the calls, innermost first; of these %zu certain:\n", bad_walk.certain);
  for (std::size_t i = bad_walk.call_count; i-- > 0;) {
    std::array<char, 32> sp;
    std::snprintf(sp.data(), sp.size(), "  sp %p:", bad_walk.calls[i].sp);
    say_address(sp.data(), reinterpret_cast<std::uintptr_t>(bad_walk.calls[i].pc));
  }
  return true;
}

void print_stuck(const Thread& thread) noexcept {
  say("storm: %s does not come back from: %s; --seed %u\n", thread.name, thread.doing.load(), seed);
  const int id = thread.id;
  if (id == 0) return;
  ::syscall(SYS_tgkill, ::getpid(), id, SIGUSR1);
  const timespec time{1, 0};
  ::nanosleep(&time, nullptr);
}

}  // namespace jitunwind::storm
