// Counters of events outside of the paths that are taken again and again. Events on these warm paths are counted only
// if the library was built with JITUNWIND_COUNT.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Events that are counted. The first ones are those of warm paths.
enum class Counter : unsigned {
  kept_row_used,    ///< a step by a kept row, with all registers
  kept_rule_used,   ///< a step of a walk of addresses that used a kept rule
  cie_known,        ///< a CIE was the same as one that had been read
  module_known,     ///< a module was unchanged since it was kept
  fde_known,        ///< a known FDE answered an unwinder
  unknown_known,    ///< code without unwind information was known to have none
  files_known,      ///< the files of a module were open
  row_made,         ///< a row was made because none was kept
  row_kept,         ///< a made row was kept
  row_of_more,      ///< a made row was not kept: it depends on more than its code and module
  row_not_compact,  ///< a made row was not kept: no compact row expresses it
  row_met_once,     ///< a made row was not kept: its address was met for the first time
  row_guessed,      ///< a guess was made because no source had a row
  chain_left,       ///< a walk of addresses had to continue with all registers
  cie_read,         ///< a CIE was read in full
  module_read,      ///< a module's headers were read
  fde_made,         ///< an FDE was made for an unwinder
  fde_refused,      ///< no FDE could be made: the procedure has no row there, or memory ran out
  unknown_met,      ///< all sources were asked, and none had a row
  files_opened,     ///< the files of a module were opened
  files_refused,    ///< opened files were not kept: there was no room, or the path now leads to another file
  shape_known,      ///< a procedure had a frame shape that another one has
  shape_made,       ///< a frame shape was made
  procedure_registered,
  procedure_cancelled,
  procedure_retired,
  registry_refused,  ///< a change of the registry that was refused with an error
  cancel_waited,     ///< a cancellation had to wait for a reader
  how_many,          ///< number of events
};

/// Whether the events of warm paths are counted, too.
#ifdef JITUNWIND_COUNT
inline constexpr bool k_counts_warm_paths = true;
#else
inline constexpr bool k_counts_warm_paths = false;
#endif

/// One set of counters for a few threads, so that threads seldom share one. Events that two threads, or a thread and
/// its interrupting handler, count at the same time in one set may be counted once.
struct alignas(64) CounterSet {
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Counter::how_many)> values{};
};
inline constexpr std::size_t k_counter_sets = 16;
extern constinit std::array<CounterSet, k_counter_sets> counter_sets;

/// Takes two instructions besides finding the set. There is no atomic addition, and nobody waits. Signal-safe.
inline void count_event(Counter counter, std::uint64_t times = 1) noexcept {
  // Each thread has a stack of its own, so its address selects a set.
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) >> 16;
  CounterSet& set = counter_sets[(stack ^ stack >> 4 ^ stack >> 8) % k_counter_sets];
  std::atomic<std::uint64_t>& value = set.values[static_cast<std::size_t>(counter)];
  value.store(value.load(std::memory_order_relaxed) + times, std::memory_order_relaxed);
}

/// Counts an event of a warm path. Does nothing unless the library was built with JITUNWIND_COUNT.
inline void count_warm_event(Counter counter, std::uint64_t times = 1) noexcept {
  if constexpr (k_counts_warm_paths) count_event(counter, times);
}

/// Returns the count since the process began. Signal-safe, thread-safe.
std::uint64_t counted(Counter counter) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
