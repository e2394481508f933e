// Threads of the storm: each has a shadow, is interrupted and walked 5000 times a second, and reports what it is doing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "tests/prove/storm_shadow.h"

namespace jitunwind::storm {

class Arena;
class Library;

struct Counters {
  std::atomic<std::size_t> walks{0}, frames{0}, wrong{0}, too_short{0}, crashes{0};
  std::atomic<std::size_t> where_libgcc_lands{0};  ///< walks that nobody could make, wrong or right
  std::atomic<std::size_t> throws{0}, caught{0}, forks{0}, vforks{0}, cancelled{0};
  std::atomic<std::size_t> registered{0}, refused{0}, replaced{0};
  std::atomic<std::size_t> loads{0}, loads_where_code_was{0}, code_where_library_was{0}, while_unloading{0};
  std::atomic<std::size_t> asked{0}, named{0};
};
Counters& counters() noexcept;

/// The state that all threads share.
struct World {
  Arena& arena;
  Library& library;
  std::atomic<bool> is_over{false};
};

struct Thread {
  Shadow shadow;  // the first member: what the debugger shows first of a stuck thread
  World* world = nullptr;
  std::mt19937 random;
  unsigned ways = 0;  ///< of the walks of this thread, by turns
  const char* name = "";
  /// The action at the bottom of a descent.
  enum class What { anything, waits_for_cancel, exits } what_to_do = What::anything;
  unsigned deepest = 18;       ///< of its descents
  unsigned catchers[32] = {};  ///< levels of the calls that catch
  unsigned catcher_count = 0;
  std::atomic<const char*> doing{""};
  std::atomic<unsigned> beats{0};
  std::atomic<int> id{0};  ///< of the kernel; 0: it does not run

  /// Records the beginning of an action; another thread watches whether it ends.
  void begin(const char* what) {
    doing.store(what, std::memory_order_relaxed);
    beats.fetch_add(1, std::memory_order_relaxed);
  }
};

/// Runs `body` on the calling thread and keeps its shadow. `has_a_handler_stack`: its handlers run on another stack.
void run(Thread& thread, void (*body)(Thread&), bool has_a_handler_stack);

/// Walks the calling thread from here, and judges the walk.
void judge_own_walk(Thread& thread);

/// Returns an address that was found on a stack recently; 0: none yet.
Addr any_walked_address(std::mt19937& random) noexcept;

/// Installs handlers of the storm's signal, and of the signals that end it.
void install_handlers(unsigned seed, const Arena& arena);
/// Counts a mistake that is not a walk's; `what` is printed at the end if it was the first.
void count_wrong(const char* what) noexcept;

/// Prints the findings of the first wrong or short walk to standard error. Returns false if there was none.
bool print_first_bad_walk() noexcept;
/// Prints what a thread without progress does, and its stack as the thread itself finds it.
void print_stuck(const Thread& thread) noexcept;

}  // namespace jitunwind::storm
