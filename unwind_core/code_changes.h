// When lookups of some code may have new answers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Counters of changes, one for every 4096th page of 4 KiB. A writer counts after its change can be seen, and before it
/// returns; a reader that takes the number first and looks up then never keeps an old answer under a new number.
class CodeChanges {
 public:
  /// Thread-safe, signal-safe. At most 64 counters, else one that counts for all code.
  void count(std::uint64_t start, std::uint64_t end) noexcept {
    constexpr std::uint64_t k_most = 64;
    const std::uint64_t first = start / k_unit;
    const std::uint64_t last = (end - 1) / k_unit;
    if (last - first >= k_most) {
      everywhere_.fetch_add(1, std::memory_order_seq_cst);
    } else {
      for (std::uint64_t page = first; page <= last; ++page) of(page).fetch_add(1, std::memory_order_seq_cst);
    }
    total_.fetch_add(1, std::memory_order_seq_cst);
  }

  /// Of all changes. The same as before: no number has changed.
  std::uint64_t total() const noexcept { return total_.load(std::memory_order_acquire); }

  std::uint64_t number(std::uint64_t pc) const noexcept { return number(pc, everywhere()); }

  /// The part of every number that counts for all code, for those who ask for many of them at about the same time.
  std::uint64_t everywhere() const noexcept { return everywhere_.load(std::memory_order_acquire) << 40; }
  std::uint64_t number(std::uint64_t pc, std::uint64_t everywhere) const noexcept {
    // Two counts that differ give sums that differ, for longer than processes live.
    return pages_[pc / k_unit % k_pages].load(std::memory_order_acquire) + everywhere;
  }

 private:
  static constexpr std::uint64_t k_unit = 4096;
  static constexpr std::size_t k_pages = 4096;
  std::atomic<std::uint64_t>& of(std::uint64_t page) noexcept { return pages_[page % k_pages]; }

  std::array<std::atomic<std::uint64_t>, k_pages> pages_{};
  alignas(64) std::atomic<std::uint64_t> everywhere_{0};
  std::atomic<std::uint64_t> total_{0};
};

}  // namespace jitunwind
#pragma GCC visibility pop
