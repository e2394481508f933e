// Functions that spread keys over tables and combine words into hashes.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Fibonacci hashing (Knuth, TAOCP 3, 6.4): times 2^64 / golden ratio. Different words stay different, and similar
/// words differ in the upper bits.
constexpr std::uint64_t spread(std::uint64_t word) noexcept { return word * 0x9e3779b97f4a7c15u; }

/// A place in a table of 2^bits. Precondition: 0 < bits <= 64.
constexpr std::size_t table_place(std::uint64_t key, unsigned bits) noexcept {
  return static_cast<std::size_t>(spread(key) >> (64 - bits));
}

/// The hash of one more word, after the words that `hash` is of.
constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t word) noexcept { return spread(hash ^ word); }

}  // namespace jitunwind
#pragma GCC visibility pop
