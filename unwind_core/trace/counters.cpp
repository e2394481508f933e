#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

[[gnu::section(".bss.large")]] alignas(4096) constinit std::array<CounterSet, k_counter_sets> counter_sets;

/// One page, so that the first walk has no page fault there: events read it first, which would be a second one.
[[gnu::constructor]] static void touch_counters() { counter_sets[0].values[0].fetch_or(0, std::memory_order_relaxed); }

std::uint64_t counted(Counter counter) noexcept {
  std::uint64_t sum = 0;
  for (const CounterSet& set : counter_sets)
    sum += set.values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace jitunwind
