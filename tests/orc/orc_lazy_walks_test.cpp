// One thread calls functions that are compiled when they are called, another one functions that LLVM's threads compile.
// A third thread's signals make both walk their stacks, by a cursor and for addresses. LLVM 19 cannot do both at once:
// with compile threads, a function may be called before those of other modules that it calls are finalised.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <jitunwind/jitunwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <thread>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

constexpr int k_modules = 60;
constexpr int k_signal = SIGUSR1;

struct Counts {
  std::atomic<int> walks{0};
  std::atomic<int> complete{0};
  std::atomic<int> with_jit_frames{0};
  std::atomic<int> ended_in_stubs{0};
  std::atomic<int> wrong{0};
};
Counts g_counts;
std::atomic<const char*> g_what_was_wrong{nullptr};
thread_local constinit std::atomic<int> t_module{-1};  ///< whose functions orc_test_drives() calls
thread_local constinit bool t_is_lazy = false;
thread_local constinit std::atomic<int> t_walks{0};

void is_right(bool right, const char* what) noexcept {
  if (right) return;
  ++g_counts.wrong;
  g_what_was_wrong = what;
}

/// The procedures that LLVM has made on the stack, innermost first, and the frames behind them.
struct Seen {
  std::array<std::array<char, 32>, 8> names;
  std::size_t jit_frames = 0;
  bool has_driver = false;
  bool has_frames_between = false;  ///< JIT frames that do not follow each other
  bool has_guesses = false;
};

constexpr std::size_t k_most_frames = 512;

/// A walk has middle_N, outer_N, lazy_N, or the last ones of them, and the function that has called the last. LLVM
/// makes local functions global, by another name, to compile them one by one.
void check_complete(const Seen& seen) noexcept {
  static constexpr std::array<const char*, 3> k_lazy{"__orc_lcl.middle_%d.%d", "outer_%d", "lazy_%d"};
  static constexpr std::array<const char*, 2> k_concurrent{"middle_%d", "outer_%d"};
  const std::span<const char* const> expected = t_is_lazy ? std::span<const char* const>(k_lazy) : k_concurrent;
  is_right(seen.has_driver, "a walk to the end has not met the function that calls");
  is_right(seen.jit_frames <= expected.size(), "more frames than calls");
  is_right(!seen.has_frames_between, "a frame between two that call each other");
  const std::size_t first = expected.size() - std::min(seen.jit_frames, expected.size());
  for (std::size_t i = first; i < expected.size(); ++i) {
    std::array<char, 32> name;
    std::snprintf(name.data(), name.size(), expected[i], t_module.load(), t_module.load());
    is_right(std::strcmp(name.data(), seen.names[i - first].data()) == 0, "not the function that was called");
  }
}

void look_at(const Frame& frame, Seen& seen) noexcept {
  seen.has_guesses = seen.has_guesses || frame.is_guess();
  std::array<char, 64> name{};
  if (frame.origin() == RowOrigin::dyn_table) {
    is_right(frame.raw_name(name).has_value(), "a procedure without its name");
    if (seen.jit_frames < seen.names.size()) std::memcpy(seen.names[seen.jit_frames].data(), name.data(), 31);
    ++seen.jit_frames;
  } else if (seen.jit_frames > 0 && !seen.has_driver) {
    seen.has_frames_between = !frame.raw_name(name) || std::strcmp(name.data(), "orc_test_drives") != 0;
    seen.has_driver = !seen.has_frames_between;
  } else if (frame.raw_name(name) && std::strcmp(name.data(), "orc_test_drives") == 0) {
    seen.has_driver = true;
  }
}

void walk_in_handler(int, siginfo_t*, void* interrupted) {
  const int saved = errno;
  std::array<Addr, k_most_frames> pcs;
  std::size_t count = 0;
  Seen seen{};
  Walk walk = walk_interrupted(interrupted);
  for (const Frame& frame : walk) {
    if (count == pcs.size()) break;
    pcs[count++] = frame.pc();
    look_at(frame, seen);
  }
  std::array<void*, k_most_frames> addresses;
  const std::size_t found = backtrace(interrupted, Cursor::Top::interrupted, addresses);
  is_right(found == count, "two walks of one stack do not end at the same frame");
  for (std::size_t i = 0; i < std::min(found, count); ++i)
    is_right(reinterpret_cast<Addr>(addresses[i]) == pcs[i], "two walks of one stack differ");

  ++g_counts.walks;
  ++t_walks;
  if (seen.jit_frames > 0) ++g_counts.with_jit_frames;
  if (walk.stop_reason() != StopReason::outermost) {
    is_right(walk.stop_reason() == StopReason::no_info, "a walk ends in an error");
    ++g_counts.ended_in_stubs;
  } else if (!seen.has_guesses) {
    ++g_counts.complete;
    if (t_module >= 0) check_complete(seen);
  }
  errno = saved;
}

/// Returns when this thread's stack was walked from below it.
long waits_for_a_walk(long x) {
  for (const int before = t_walks; t_walks == before;) ::sched_yield();
  return x;
}

}  // namespace

extern "C" [[gnu::noinline, gnu::visibility("default")]] long orc_test_drives(Calls function, int module) {
  t_module = module;  // here, so that a walk that sees it meets this function
  const long result = function(waits_for_a_walk, 1);
  t_module = -1;
  return result;
}

namespace {

std::unique_ptr<orc::LLJIT> lazy_jit() {
  auto jit = or_exit(orc::LLLazyJITBuilder().create());
  or_exit(attach(*jit));
  for (int i = 0; i < k_modules; ++i)
    for (const std::string_view text : {k_local_functions, k_lazy_caller})
      or_exit(jit->addLazyIRModule(module_of(numbered(text, i))));
  return jit;
}

std::unique_ptr<orc::LLJIT> concurrent_jit() {
  auto jit = or_exit(orc::LLJITBuilder().setNumCompileThreads(2).create());
  or_exit(attach(*jit));
  for (int i = 0; i < k_modules; ++i) or_exit(jit->addIRModule(module_of(numbered(k_local_functions, i))));
  return jit;
}

/// A thread that is sent signals from its first to its last call, and not beyond.
class Caller {
 public:
  Caller(std::unique_ptr<orc::LLJIT> jit, bool is_lazy)
      : jit_(std::move(jit)), thread_([this, is_lazy] { run(is_lazy); }) {
    while (!is_ready_) ::sched_yield();
  }
  ~Caller() {
    may_end_ = true;
    thread_.join();
  }
  bool is_done() const { return is_done_; }
  void interrupt() { ASSERT_EQ(::pthread_kill(thread_.native_handle(), k_signal), 0); }

 private:
  void run(bool is_lazy) {
    t_is_lazy = is_lazy;
    is_ready_ = true;
    for (int i = 0; i < k_modules; ++i) {
      const auto function = or_exit(jit_->lookup((is_lazy ? "lazy_" : "outer_") + std::to_string(i))).toPtr<Calls>();
      EXPECT_EQ(orc_test_drives(function, i), is_lazy ? 4 : 3);
    }
    is_done_ = true;
    while (!may_end_) ::sched_yield();
  }
  std::atomic<bool> is_ready_{false};
  std::atomic<bool> is_done_{false};
  std::atomic<bool> may_end_{false};
  const std::unique_ptr<orc::LLJIT> jit_;
  std::thread thread_;
};

// covers: DY46
TEST(OrcLazyWalks, OfThreadsWhoseCodeIsBeingCompiled) {
  struct sigaction action {};
  action.sa_sigaction = walk_in_handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ASSERT_EQ(::sigaction(k_signal, &action, nullptr), 0);
  {
    const std::array<std::unique_ptr<Caller>, 2> callers{std::make_unique<Caller>(lazy_jit(), true),
                                                         std::make_unique<Caller>(concurrent_jit(), false)};
    const auto is_done = [](const auto& caller) { return caller->is_done(); };
    while (!std::all_of(callers.begin(), callers.end(), is_done)) {
      for (const auto& caller : callers) caller->interrupt();
      ::sched_yield();
    }
  }
  EXPECT_EQ(g_counts.wrong, 0) << g_what_was_wrong;
  EXPECT_GE(g_counts.with_jit_frames, 2 * k_modules);
  EXPECT_GE(g_counts.complete, 2 * k_modules);
  std::printf("%d walks, %d complete, %d with frames of LLVM's code, %d ended in stubs\n", g_counts.walks.load(),
              g_counts.complete.load(), g_counts.with_jit_frames.load(), g_counts.ended_in_stubs.load());
}

}  // namespace
}  // namespace jitunwind::test
