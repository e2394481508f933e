// The last changes of the list of procedures, for readers in other processes that know what it was before.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The change of number n is `last[n % k_kept]`, while n + k_kept >= count. Changes are written only while the list's
/// generation is odd. Readers find them by the ELF note of type 2: docs/registry.md "Finding the list".
struct ListChanges {
  static constexpr std::uint32_t k_kept = 256;
  struct Change {
    std::atomic<std::uint64_t> descriptor;  ///< + 1: cancelled; else registered
    std::atomic<std::uint64_t> begin, end;  ///< range of its code
  };

  /// There is one writer at a time. All stores of a change are release stores: none is visible before the odd
  /// generation.
  void note(std::uint64_t descriptor, bool is_registered, const AddrRange& code) noexcept {
    const std::uint64_t number = count.load(std::memory_order_relaxed);
    Change& change = last[number % k_kept];
    change.descriptor.store(descriptor + (is_registered ? 0 : 1), std::memory_order_release);
    change.begin.store(code.begin, std::memory_order_release);
    change.end.store(code.end, std::memory_order_release);
    count.store(number + 1, std::memory_order_release);
  }

  std::atomic<std::uint64_t> count;  ///< number of changes; starts at the time of the first one
  std::array<Change, k_kept> last;
};
static_assert(sizeof(ListChanges) == 8 + 24 * ListChanges::k_kept);

}  // namespace jitunwind
