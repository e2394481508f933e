#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

constinit std::array<CounterSet, k_counter_sets> counter_sets;

std::uint64_t counted(Counter counter) noexcept {
  std::uint64_t sum = 0;
  for (const CounterSet& set : counter_sets)
    sum += set.values[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

}  // namespace jitunwind
