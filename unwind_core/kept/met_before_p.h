// One bit for each address that says whether it was met before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Says of a hash whether it was met before, or one that has its bit in common: at most one of four that are new.
/// Begins anew when it has met k_most. Thread-safe, signal-safe, nobody waits: what two threads meet at the same time
/// may get lost. Constant-initialised. A page of memory.
class MetBefore {
 public:
  /// False, and true from now on. `met`: how many times it was, zero to begin with.
  bool has_met(std::uint64_t hash, std::atomic<std::uint32_t>& met) noexcept {
    const auto bit = static_cast<std::size_t>(hash >> (64 - k_bits));
    std::atomic<std::uint64_t>& word = words_[bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << bit % 64;
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if ((seen & mask) != 0) return true;
    word.store(seen | mask, std::memory_order_relaxed);
    if (met.fetch_add(1, std::memory_order_relaxed) == k_most) begin_anew(met);
    return false;
  }

  /// Nothing was met before. Nobody else uses it meanwhile.
  void clear(std::atomic<std::uint32_t>& met) noexcept {
    if (met.load(std::memory_order_relaxed) != 0) begin_anew(met);
  }

  /// Writes to the page, so that the first walk has no page fault there.
  void touch() noexcept { words_[0].fetch_or(0, std::memory_order_relaxed); }

 private:
  static constexpr unsigned k_bits = 15;
  static constexpr std::uint32_t k_most = (1u << k_bits) / 4;

  [[gnu::noinline]] void begin_anew(std::atomic<std::uint32_t>& met) noexcept {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
    met.store(0, std::memory_order_relaxed);
  }

  alignas(4096) std::array<std::atomic<std::uint64_t>, (std::size_t{1} << k_bits) / 64> words_{};
};

}  // namespace jitunwind
#pragma GCC visibility pop
