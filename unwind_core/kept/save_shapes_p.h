// The places where compact rows save registers. Many rows have few such shapes.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/caller_rule_p.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Compact rows without their CFA's offset, by numbers from 1 on. Compilers push registers in one order: the million
/// rows of LLVM's libraries have some sixty shapes. Once there are k_most no other shape gets a number. Entries stay as
/// they are. Thread-safe, signal-safe, nobody waits. Constant-initialised.
class SaveShapes {
 public:
  static constexpr unsigned k_most = 767;
  static_assert(k_most <= CallerRule::k_most_shape);

  /// 0: there is no room. Two threads that are first at the same time may get two numbers.
  unsigned number_of(const CompactRow& row) noexcept {
    const Words shape = words_of(row);
    const std::size_t home = table_place(hash_with(spread(shape[0]), shape[1]), k_place_bits);
    for (std::size_t i = 0; i < k_probes; ++i) {
      std::atomic<std::uint16_t>& place = places_[(home + i) % places_.size()];
      const unsigned number = place.load(std::memory_order_acquire);
      if (number == 0) return add(shape, place);
      if (load(number) == shape) return number;
    }
    return 0;
  }

  /// Precondition: a number that number_of() gave. It copies word by word. A processor waits for two words that were
  /// just stored and are loaded as one vector, as copies of structures do.
  void row(unsigned number, std::uint16_t cfa_words, CompactRow& out) const noexcept {
    const Words shape = load(number);
    const std::uint64_t first = shape[0] | cfa_words, second = shape[1];
    auto* const bytes = reinterpret_cast<std::byte*>(&out);
    std::memcpy(bytes, &first, sizeof first);
    std::memcpy(bytes + sizeof first, &second, sizeof second);
  }

  /// No shape has a number any more. Nobody else uses it meanwhile.
  void clear() noexcept {
    if (taken_.exchange(0, std::memory_order_relaxed) == 0) return;
    for (std::atomic<std::uint16_t>& place : places_) place.store(0, std::memory_order_relaxed);
  }

  /// Has the page that most programs need.
  void touch() noexcept { places_[0].fetch_or(0, std::memory_order_relaxed); }

 private:
  using Words = std::array<std::uint64_t, sizeof(CompactRow) / sizeof(std::uint64_t)>;
  static constexpr unsigned k_place_bits = 10;
  static constexpr std::size_t k_probes = 32;

  static constexpr std::uint64_t k_cfa_words = 0xffff;
  static Words words_of(const CompactRow& row) noexcept {
    const auto words = std::bit_cast<Words>(row);
    return {words[0] & ~k_cfa_words, words[1]};
  }
  Words load(unsigned number) const noexcept {
    const auto& shape = shapes_[number - 1];
    return {shape[0].load(std::memory_order_relaxed), shape[1].load(std::memory_order_relaxed)};
  }
  unsigned add(const Words& shape, std::atomic<std::uint16_t>& place) noexcept {
    if (taken_.load(std::memory_order_relaxed) >= k_most) return 0;
    const unsigned number = taken_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number > k_most) return 0;
    for (std::size_t i = 0; i < shape.size(); ++i) shapes_[number - 1][i].store(shape[i], std::memory_order_relaxed);
    std::uint16_t none = 0;
    place.compare_exchange_strong(none, static_cast<std::uint16_t>(number), std::memory_order_release);
    return number;
  }

  alignas(4096) std::atomic<unsigned> taken_{0};
  std::array<std::atomic<std::uint16_t>, std::size_t{1} << k_place_bits> places_{};  ///< numbers by shape
  std::array<std::array<std::atomic<std::uint64_t>, 2>, k_most> shapes_{};
};
static_assert(sizeof(CompactRow) == 2 * sizeof(std::uint64_t) && offsetof(CompactRow, cfa_words) == 0);
static_assert(std::endian::native == std::endian::little);

}  // namespace jitunwind
#pragma GCC visibility pop
