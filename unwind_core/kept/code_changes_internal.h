// Counters that say when look-ups of some code may have new answers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {
class CodeChangesTest;

/// Code is divided into stretches of eight sizes, and each stretch has a counter of changes. A change counts for the
/// two or three stretches of its own size that it lies on, so that code beside it is not affected. Each region of code
/// has a note of the sizes that count in it. No size counts in a region where nothing was ever registered, and a reader
/// there touches nothing that writers write.
///
/// A writer counts after its change can be seen, and before it returns. A reader takes the number first and looks up
/// then, so it never keeps an old answer under a new number. No number of an address comes again: counts only grow, and
/// sizes that count are added and never taken away.
class CodeChanges {
 public:
  /// Counts a change. One writer at a time may call it, or anybody for code that was counted before. Signal-safe.
  /// It touches at most three counters; a change of more than 2 MiB has one, which counts for all code, as has each
  /// change while there is no memory for the others.
  void count(std::uint64_t start, std::uint64_t end) noexcept {
    const unsigned size = size_of(end - start);
    if (size == k_sizes || !counters_.get()) {
      everywhere_.fetch_add(1, std::memory_order_seq_cst);
      return;
    }
    const std::uint64_t last = end - 1;
    for (std::uint64_t region = start >> k_region_bits; region <= last >> k_region_bits; ++region)
      have_counted(region, size);
    count_units(start, last, size);
  }
  /// Counts a change by anyone at any time. Only the one writer may begin to count a new size; this counts for all code
  /// instead.
  void count_beside_writers(std::uint64_t start, std::uint64_t end) noexcept {
    const unsigned size = size_of(end - start);
    const std::uint64_t last = end - 1;
    bool counts = size != k_sizes;
    for (std::uint64_t region = start >> k_region_bits; counts && region <= last >> k_region_bits; ++region)
      counts = (sizes_[region % k_regions].load(std::memory_order_acquire) & 1u << size) != 0;
    if (!counts) {
      everywhere_.fetch_add(1, std::memory_order_seq_cst);
      return;
    }
    count_units(start, last, size);
  }

  /// Whether nothing was ever counted.
  bool is_new() const noexcept { return everywhere_.load() == 0 && !stretches_count_.load(); }

  /// Gives the counters' memory back. Nobody uses this any more.
  void release() noexcept { (void)counters_.take(); }

  std::uint64_t number(std::uint64_t pc) const noexcept { return number(pc, everywhere()); }

  /// The part of every number that counts for all code, for those who ask for many of them at about the same time. It
  /// is spread so far that no count of stretches makes up for it. The values for n and n + m changes of all code differ
  /// by at least 2^64 / (sqrt(5) m), modulo 2^64 (Knuth, The Art of Computer Programming 3, 6.4: multiples of the
  /// golden ratio).
  std::uint64_t everywhere() const noexcept { return spread(everywhere_.load(std::memory_order_acquire)); }
  std::uint64_t number(std::uint64_t pc, std::uint64_t everywhere) const noexcept {
    const unsigned sizes = sizes_at(pc);
    if (sizes == 0) [[likely]]
      return everywhere;
    if ((sizes & (sizes - 1)) != 0) [[unlikely]]
      return counted(pc, sizes) + everywhere;
    const std::size_t counter = place_of(pc, static_cast<unsigned>(std::countr_zero(sizes)));
    return counters()[counter].load(std::memory_order_acquire) + everywhere;
  }

  /// False: nothing counts there, and the number is everywhere().
  bool may_count(std::uint64_t pc) const noexcept { return sizes_at(pc) != 0; }

 private:
  friend class CodeChangesTest;
  static constexpr unsigned k_sizes = 8;
  static constexpr unsigned k_region_bits = 16;
  static constexpr std::size_t k_regions = std::size_t{1} << 14;
  static constexpr std::size_t k_counters = std::size_t{1} << 15;

  /// 64 bytes to 1 MiB.
  static constexpr unsigned unit_bits(unsigned size) noexcept { return 6 + 2 * size; }
  /// The smallest units of which two are enough for so many bytes that begin where one does.
  static constexpr unsigned size_of(std::uint64_t bytes) noexcept {
    if (bytes - 1 >= std::uint64_t{2} << unit_bits(k_sizes - 1)) return k_sizes;  // 0, too
    constexpr std::uint64_t k_least = 64;  // one bit fewer than a pair of the smallest units needs
    return (static_cast<unsigned>(std::bit_width((bytes - 1) | k_least)) - 6) / 2;
  }

  /// Neighbours are on one page of memory, so that few pages are touched. They are on different cache lines of it, so
  /// that a reader of the one does not wait for a writer of the other.
  static constexpr std::size_t place(std::uint64_t unit, unsigned size) noexcept {
    constexpr std::uint64_t k_of_page = 512, k_lines = 64, k_of_line = 8;
    const std::uint64_t page = unit / k_of_page + std::uint64_t{size} * 9;
    const std::uint64_t in_page = unit % k_lines * k_of_line + unit / k_lines % k_of_line;
    return static_cast<std::size_t>(page * k_of_page + in_page) % k_counters;
  }

  unsigned sizes_at(std::uint64_t pc) const noexcept {
    return sizes_[(pc >> k_region_bits) % k_regions].load(std::memory_order_acquire);
  }
  static constexpr std::size_t place_of(std::uint64_t pc, unsigned size) noexcept {
    return place(pc >> unit_bits(size), size);
  }
  /// Different counts have different sums, for longer than processes live.
  [[gnu::noinline]] std::uint64_t counted(std::uint64_t pc, unsigned sizes) const noexcept {
    std::uint64_t sum = 0;
    for (; sizes != 0; sizes &= sizes - 1)
      sum += counters()[place_of(pc, static_cast<unsigned>(std::countr_zero(sizes)))].load(std::memory_order_acquire);
    return sum;
  }
  void count_units(std::uint64_t start, std::uint64_t last, unsigned size) noexcept {
    const unsigned bits = unit_bits(size);
    for (std::uint64_t unit = start >> bits; unit <= last >> bits; ++unit)
      counters()[place(unit, size)].fetch_add(1, std::memory_order_seq_cst);
  }
  void have_counted(std::uint64_t region, unsigned size) noexcept {
    std::atomic<std::uint8_t>& sizes = sizes_[region % k_regions];
    const auto bit = static_cast<std::uint8_t>(1u << size);
    if ((sizes.load(std::memory_order_relaxed) & bit) != 0) return;
    sizes.fetch_or(bit, std::memory_order_seq_cst);
    stretches_count_.store(true, std::memory_order_relaxed);
  }

  using Counters = std::array<std::atomic<std::uint64_t>, k_counters>;
  /// Precondition: a size counts somewhere.
  Counters& counters() const noexcept { return *counters_.if_made(); }

  alignas(64) std::atomic<std::uint64_t> everywhere_{0};
  std::atomic<bool> stretches_count_{false};
  MadeOnce<Counters> counters_;
  alignas(64) std::array<std::atomic<std::uint8_t>, k_regions> sizes_{};  ///< a bit each, in each region
};

}  // namespace jitunwind
#pragma GCC visibility pop
