// GDB's interface for code made at run time ("JIT Compilation Interface" in GDB's manual): the lists of files that a
// debugger reads, and the functions in which it has a breakpoint.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "jitunwind/unwind_core/targets/tracer_internal.h"

/// The structures of the manual; version 1.
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const std::byte* symfile_addr;
  std::uint64_t symfile_size;
};
struct jit_descriptor {
  std::uint32_t version;
  std::uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
static_assert(sizeof(jit_descriptor) == 8 + 2 * sizeof(void*) && sizeof(jit_code_entry) == 3 * sizeof(void*) + 8);

namespace jitunwind {

struct JitSharedLists;

/// The entries of one copy of this library in the lists of the process's descriptors, which all copies share.
class JitInterface {
 public:
  explicit JitInterface(Tracer& tracer) noexcept : tracer_(tracer) {}

  /// Finds the descriptors. False: no memory, which is possible on the first call only. `empty_file` is copied.
  bool open(std::span<const std::byte> empty_file) noexcept;
  /// Precondition: the lists have no entry of this copy.
  void close() noexcept;
  bool is_open() const noexcept { return shared_ != nullptr; }
  /// Number of copies of this library that have the interface open, this one included.
  unsigned users() const noexcept;

  // A debugger, if there is one, has read or dropped the file when these return. They wait for the lock of the dynamic
  // linker's list of objects, which is never held while constructors run.

  void add(jit_code_entry& entry) noexcept;
  void remove(jit_code_entry& entry) noexcept;

  /// Total number of times a debugger was told.
  std::uint64_t stops() const noexcept { return stops_; }

 private:
  JitSharedLists* open_own(std::span<const std::byte> empty_file) noexcept;
  bool open_of(JitSharedLists& others) noexcept;
  void tell_that_guards_go() noexcept;
  void tell(std::uint32_t action, jit_code_entry& entry) noexcept;
  bool tell_lists(std::uint32_t action, jit_code_entry& entry, bool first_alone) noexcept;

  Tracer& tracer_;
  JitSharedLists* own_ = nullptr;  // made by this copy, shared by all
  JitSharedLists* shared_ = nullptr;
  std::uint64_t stops_ = 0;
  bool gdb_was_first_ = false;  // it did not attach after the lists were opened
};

// A limit for the stops of the process by a debugger.

/// The budget allows a number of stops, and more while they take at most a fifth of the time; unused stops and time are
/// saved up. It allows fewer stops if each takes seconds. One change still goes at once after a quiet time, pause(),
/// when the budget is spent.
class StopBudget {
 public:
  using Clock = std::chrono::steady_clock;

  bool is_spent() noexcept {
    refill();
    return time_ <= -k_most_debt || (time_ <= Clock::duration(0) && stops_ < k_between_stops);
  }
  /// Called after a change that stopped the process.
  void spend(Clock::duration time, unsigned stops) noexcept {
    time_ = std::max(time_ - time, -2 * k_most_debt);
    stops_ = std::max(stops_ - stops * k_between_stops, Clock::duration(0));
    pause_ = std::clamp(time, k_least_pause, k_most_pause);
    paused_until_ = Clock::now() + pause_;
  }
  void restore() noexcept {
    time_ = k_most_time;
    stops_ = k_most_stops;
  }
  /// Time for which changes are collected: as long as the latest change took, since the process should run half of the
  /// time.
  Clock::duration pause() const noexcept { return pause_; }
  bool has_paused() const noexcept { return Clock::now() >= paused_until_; }

 private:
  static constexpr Clock::duration k_most_time = std::chrono::milliseconds(400);
  static constexpr Clock::duration k_most_debt = std::chrono::seconds(1);
  static constexpr Clock::duration k_between_stops = std::chrono::milliseconds(15);
  static constexpr Clock::duration k_most_stops = 100 * k_between_stops;
  static constexpr Clock::duration k_least_pause = std::chrono::milliseconds(30);
  static constexpr Clock::duration k_most_pause = std::chrono::seconds(1);

  void refill() noexcept {
    const Clock::time_point now = Clock::now();
    const Clock::duration passed = now - std::exchange(refilled_, now);
    time_ = std::min(time_ + passed / 5, k_most_time);
    stops_ = std::min(stops_ + passed, k_most_stops);
  }

  Clock::duration time_ = k_most_time;
  Clock::duration stops_ = k_most_stops;  // in units of time: one stop per 15 ms
  Clock::duration pause_ = k_least_pause;
  Clock::time_point refilled_ = Clock::now();
  Clock::time_point paused_until_{};
};

}  // namespace jitunwind
