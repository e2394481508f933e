#include "tests/walk/churn.h"

#include <libunwind.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "churn_code.h"
#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registration.h"
#include "tests/support/handlers.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_slots = 48;
constexpr std::size_t k_slot_size = 64;  // one and a half slots to a cell of the registry's index, many to a page
constexpr std::size_t k_max_calls = 14;
constexpr std::size_t k_walked_threads = 2;
constexpr long k_period = 50'000;  // ns

struct Kind {
  std::uint8_t room;
  ChurnCode::Bytes code;
  Description description;
};

/// A place for one procedure of code after the other. `users` counts the calls that run through it; -1: it is being
/// replaced.
struct Slot {
  std::uint8_t* code = nullptr;
  std::atomic<int> users{0};
  Registration registration;

  bool enter() {
    int before = users.load(std::memory_order_relaxed);
    while (before >= 0)
      if (users.compare_exchange_weak(before, before + 1, std::memory_order_acquire)) return true;
    return false;
  }
  void leave() { users.fetch_sub(1, std::memory_order_release); }
  bool begin_replacing() {
    int nobody = 0;
    return users.compare_exchange_strong(nobody, -1, std::memory_order_acquire);
  }
  void end_replacing() { users.store(0, std::memory_order_release); }
  Addr return_address() const { return reinterpret_cast<std::uintptr_t>(code) + ChurnCode::k_after_call; }
};

class Arena {
 public:
  Arena() {
    for (std::uint8_t room = 0; room < 128; room = static_cast<std::uint8_t>(room + 16))
      kinds_.push_back({room, ChurnCode::code_with(room), ChurnCode::description_with(room)});
    memory_ =
        ::mmap(nullptr, k_slots * k_slot_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::runtime_error("mmap");
    for (std::size_t i = 0; i < k_slots; ++i) {
      slots_[i].code = static_cast<std::uint8_t*>(memory_) + i * k_slot_size;
      fill(slots_[i], kinds_[i % kinds_.size()]);
    }
  }
  ~Arena() {
    for (Slot& slot : slots_) (void)slot.registration.cancel();
    ::munmap(memory_, k_slots * k_slot_size);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool contains(Addr pc) const { return pc - reinterpret_cast<std::uintptr_t>(memory_) < k_slots * k_slot_size; }
  /// Enters a slot; the caller leaves it.
  Slot& any(std::mt19937& random) {
    for (;;)
      if (Slot& slot = slots_[random() % k_slots]; slot.enter()) return slot;
  }
  bool replace_one(std::mt19937& random) {
    Slot& slot = slots_[random() % k_slots];
    if (!slot.begin_replacing()) return false;
    (void)slot.registration.cancel();
    fill(slot, kinds_[random() % kinds_.size()]);
    slot.end_replacing();
    return true;
  }

 private:
  static void fill(Slot& slot, const Kind& kind) {
    std::memcpy(slot.code, kind.code.data(), sizeof kind.code);
    __builtin___clear_cache(reinterpret_cast<char*>(slot.code), reinterpret_cast<char*>(slot.code + k_slot_size));
    slot.registration = register_code(kind.description, slot.code, sizeof kind.code).value();
  }

  std::vector<Kind> kinds_;
  void* memory_ = nullptr;
  std::array<Slot, k_slots> slots_;
};

/// A thread's record of its own calls. The thread writes it, and its handler reads it.
struct Shadow {
  std::array<Addr, k_max_calls> calls{};  // return addresses in procedures, from the outermost one
  std::atomic<std::size_t> count{0};
  std::atomic<Addr> outermost{0};  // of the whole stack; 0: no walks yet
};
thread_local Shadow shadow;

struct Counters {
  std::atomic<std::size_t> walks{0}, by_cursor{0}, wrong{0}, short_ones{0}, jit_frames{0}, deepest{0};
};
Counters counters;
const Arena* walked_arena = nullptr;

using Addresses = std::array<Addr, 256>;

/// The first wrong or short walk, beside the thread's record of its calls.
struct BadWalk {
  std::atomic<bool> taken{false};
  const char* by = "";
  Addresses found{};
  std::size_t count = 0;
  std::array<Addr, k_max_calls> calls{};
  std::size_t calls_count = 0;

  void note(const char* made_by, std::span<const Addr> walk) {
    if (taken.exchange(true)) return;
    by = made_by;
    count = walk.size();
    std::copy(walk.begin(), walk.end(), found.begin());
    calls = shadow.calls;
    calls_count = shadow.count.load(std::memory_order_relaxed);
  }
  std::string text() const {
    std::ostringstream out;
    out << "; the first bad one, by " << by << ":" << std::hex;
    for (std::size_t i = 0; i < count; ++i) out << " " << found[i] << (walked_arena->contains(found[i]) ? "*" : "");
    out << "; the calls:";
    for (std::size_t i = calls_count; i-- > 0;) out << " " << calls[i];
    return out.str();
  }
};
BadWalk bad_walk;

std::size_t addresses_by_cursor(HandlerContext from, Addresses& into) {
  unw_cursor_t cursor;
  std::size_t count = 0;
  if (unw_init_local2(&cursor, from.context, from.k_kind) != 0) return 0;
  do {
    unw_word_t pc = 0;
    (void)unw_get_reg(&cursor, UNW_REG_IP, &pc);
    into[count++] = pc;
  } while (count < into.size() && unw_step(&cursor) > 0);
  return count;
}

std::size_t addresses_by_backtrace(HandlerContext from, Addresses& into) {
  std::array<void*, 256> found;
  const int count = unw_backtrace2(found.data(), static_cast<int>(found.size()), from.context, from.k_kind);
  for (int i = 0; i < count; ++i)
    into[static_cast<std::size_t>(i)] = reinterpret_cast<std::uintptr_t>(found[static_cast<std::size_t>(i)]);
  return static_cast<std::size_t>(count);
}

void note_largest(std::atomic<std::size_t>& largest, std::size_t value) {
  std::size_t before = largest.load(std::memory_order_relaxed);
  while (before < value && !largest.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

/// Counts and returns the mistakes. Procedures, from the outermost one, must be those that the thread has recorded; at
/// most `more` may be missing where a call has just begun or just ended.
std::size_t judge(const char* by, std::span<const Addr> walk, std::size_t more) {
  std::array<Addr, k_max_calls + 2> procedures;
  std::size_t number = 0;
  for (const Addr pc : walk)
    if (walked_arena->contains(pc) && number < procedures.size()) procedures[number++] = pc;
  const std::size_t calls = shadow.count.load(std::memory_order_relaxed);
  const bool is_short = walk.empty() || walk.back() != shadow.outermost.load(std::memory_order_relaxed);
  const bool is_right =
      number >= calls && number <= calls + more &&
      std::equal(shadow.calls.begin(), shadow.calls.begin() + static_cast<std::ptrdiff_t>(calls),
                 std::make_reverse_iterator(procedures.begin() + static_cast<std::ptrdiff_t>(number)));
  if (is_short || !is_right) bad_walk.note(by, walk);
  counters.short_ones += is_short;
  counters.wrong += !is_right;
  return number;
}

void check_walk(HandlerContext from) {
  if (shadow.outermost.load(std::memory_order_relaxed) == 0) return;
  const bool by_cursor = counters.walks.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
  counters.by_cursor += by_cursor;
  Addresses found;
  const std::size_t count = by_cursor ? addresses_by_cursor(from, found) : addresses_by_backtrace(from, found);
  const std::size_t procedures = judge(by_cursor ? "cursor" : "backtrace", {found.data(), count}, 1);
  counters.jit_frames += procedures;
  note_largest(counters.deepest, procedures);
}

/// The timer uses CLOCK_MONOTONIC, because clocks of processor time tick 250 times a second at most. Each tick is
/// requested when the handler of the last one is done: if a handler takes longer than a period, as under emulators, the
/// thread would otherwise run nothing else.
class Profiler {
 public:
  Profiler() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR2;
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) throw std::runtime_error("timer_create");
    own_ = this;
    go_on();
  }
  ~Profiler() {
    own_ = nullptr;
    ::timer_delete(timer_);
  }
  static void go_on() {
    const itimerspec once{{0, 0}, {0, k_period}};
    if (own_) ::timer_settime(own_->timer_, 0, &once, nullptr);
  }
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

 private:
  static inline thread_local Profiler* own_ = nullptr;
  timer_t timer_{};
};

void on_signal(int, siginfo_t*, void* context) {
  const int saved = errno;
  JITUNWIND_HANDLER_CONTEXT(from, context);
  check_walk(from);
  Profiler::go_on();
  errno = saved;
}

/// Walks from the thread's own code, not from a handler.
void check_own_walk() {
  std::array<void*, 256> found;
  const auto count = static_cast<std::size_t>(unw_backtrace(found.data(), static_cast<int>(found.size())));
  Addresses walk;
  for (std::size_t i = 0; i < count; ++i) walk[i] = reinterpret_cast<std::uintptr_t>(found[i]);
  (void)judge("the thread itself", {walk.data(), count}, 0);
}

struct Descent {
  Arena* arena;
  std::mt19937* random;
  const Slot* through;  // null: called by no procedure
  std::size_t left;
};

/// A procedure calls this, which calls the next procedure.
void* descend(void* argument) {
  const Descent& descent = *static_cast<const Descent*>(argument);
  if (descent.through) {
    const std::size_t count = shadow.count.load(std::memory_order_relaxed);
    shadow.calls[count] = descent.through->return_address();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    shadow.count.store(count + 1, std::memory_order_relaxed);
  }
  if (descent.left > 0) {
    Slot& slot = descent.arena->any(*descent.random);
    Descent next{descent.arena, descent.random, &slot, descent.left - 1};
    auto* const procedure = reinterpret_cast<void* (*)(void* (*)(void*), void*)>(slot.code);
    ChurnCode::expect_new_code();
    (void)procedure(&descend, &next);
    slot.leave();
  } else {
    check_own_walk();  // which signals interrupt, too
  }
  if (descent.through) shadow.count.store(shadow.count.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return nullptr;
}

/// The last address of this thread's stack.
Addr outermost_here() {
  std::array<void*, 256> all;
  const int count = unw_backtrace(all.data(), static_cast<int>(all.size()));
  return count > 0 ? reinterpret_cast<std::uintptr_t>(all[static_cast<std::size_t>(count) - 1]) : 0;
}

void be_walked(Arena& arena, unsigned seed, std::size_t walks) {
  std::mt19937 random(seed);
  shadow.outermost = outermost_here();
  const Profiler profiler;
  while (counters.walks.load(std::memory_order_relaxed) < walks) {
    Descent descent{&arena, &random, nullptr, random() % k_max_calls + 1};
    (void)descend(&descent);
  }
  shadow.outermost = 0;
}

}  // namespace

std::string ChurnFigures::text() const {
  return std::to_string(walks) + " walks (" + std::to_string(by_cursor) + " by single steps), " +
         std::to_string(jit_frames) + " procedures on them, up to " + std::to_string(deepest) + " at once; " +
         std::to_string(replaced) + " procedures replaced in place; wrong " + std::to_string(wrong) + ", short " +
         std::to_string(short_ones) + first_bad;
}

ChurnFigures churn(std::size_t walks) {
  Arena arena;
  walked_arena = &arena;
  counters.walks = 0;
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGUSR2, &action, nullptr);
  ChurnFigures figures;
  std::atomic<bool> done{false};
  std::thread replacer([&] {
    std::mt19937 random(1);
    while (!done.load(std::memory_order_relaxed)) figures.replaced += arena.replace_one(random);
  });
  std::vector<std::thread> walked;
  for (std::size_t i = 0; i < k_walked_threads; ++i)
    walked.emplace_back([&, i] { be_walked(arena, static_cast<unsigned>(i) + 7, walks); });
  for (std::thread& thread : walked) thread.join();
  done = true;
  replacer.join();
  figures.walks = counters.walks;
  figures.by_cursor = counters.by_cursor;
  figures.wrong = counters.wrong;
  figures.short_ones = counters.short_ones;
  figures.jit_frames = counters.jit_frames;
  figures.deepest = counters.deepest;
  if (bad_walk.taken) figures.first_bad = bad_walk.text();
  return figures;
}

}  // namespace jitunwind::test
