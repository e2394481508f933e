// When lookups of some code may have new answers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind_core/page_p.h"

namespace jitunwind {

/// Counters of changes, one for every 4096th page. A writer counts after its change can be seen, and before it returns;
/// a reader that takes the number first and looks up then never keeps an old answer under a new number.
class CodeChanges {
 public:
  /// Thread-safe, signal-safe. At most 64 counters, else one that counts for all code.
  void count(std::uint64_t start, std::uint64_t end) noexcept {
    constexpr std::uint64_t k_most = 64;
    const std::uint64_t first = start / k_page_size;
    const std::uint64_t last = (end - 1) / k_page_size;
    if (last - first >= k_most) {
      everywhere_.fetch_add(1, std::memory_order_seq_cst);
      return;
    }
    for (std::uint64_t page = first; page <= last; ++page) of(page).fetch_add(1, std::memory_order_seq_cst);
  }

  std::uint64_t number(std::uint64_t pc) const noexcept {
    // Two counts that differ give sums that differ, for longer than processes live.
    return pages_[pc / k_page_size % k_pages].load(std::memory_order_acquire) +
           (everywhere_.load(std::memory_order_acquire) << 40);
  }

 private:
  static constexpr std::size_t k_pages = 4096;
  std::atomic<std::uint64_t>& of(std::uint64_t page) noexcept { return pages_[page % k_pages]; }

  std::array<std::atomic<std::uint64_t>, k_pages> pages_{};
  alignas(64) std::atomic<std::uint64_t> everywhere_{0};
};

}  // namespace jitunwind
