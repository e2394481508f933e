// A value of code under a key that says of which code it is, for tables that many threads and signal handlers read and
// write at once.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The words of a value and a key, which are written and read without order:
///   key = address ^ mix(value, version)
/// mix is one-to-one in the version for each value, so that an entry never stands for its address under another
/// version. Words that do not belong together stand for an address with probability 2^-64, as do an entry of another
/// address under another version. So do words of zeros, an empty entry, stand for an address: one that no code has.
/// Thread-safe, signal-safe, nobody waits. Constant-initialised.
///
/// Value: plain data of whole words. `value.digest()` is a word that the key depends on, one-to-one if it can be. It
/// leaves out the parts of a value that may be replaced at any time.
template <class V>
class CodeEntry {
 public:
  using Value = V;

  /// The cipher of a version, by which keys are encrypted. A caller with many lookups under one version makes it once.
  static constexpr std::uint64_t cipher(std::uint64_t version) noexcept { return spread(version) ^ k_cipher_of_none; }
  static constexpr std::uint64_t key_of(Addr at, const Value& value, std::uint64_t cipher_of_version) noexcept {
    return at ^ mix(value, cipher_of_version);
  }

  Value value() const noexcept { return value_of(std::make_index_sequence<k_words>()); }
  std::uint64_t key() const noexcept { return key_.load(std::memory_order_relaxed); }
  /// Whether the entry is of the address under that version. `value`: value(), as it was read.
  bool holds(const Value& value, Addr at, std::uint64_t cipher_of_version) const noexcept {
    return key() == key_of(at, value, cipher_of_version);
  }

  void set(const Value& value, std::uint64_t key) noexcept {
    set(value);
    key_.store(key, std::memory_order_relaxed);
  }
  /// Replaces what digest() leaves out.
  void set(const Value& value) noexcept {
    const Words words = std::bit_cast<Words>(value);
    for (std::size_t i = 0; i < k_words; ++i) words_[i].store(words[i], std::memory_order_release);
  }
  /// Writes what is there.
  void touch() noexcept { key_.fetch_or(0, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t k_words = sizeof(Value) / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, k_words>;
  static_assert(sizeof(Words) == sizeof(Value) && std::has_unique_object_representations_v<Value>);

  /// Walks may come to address 0, by a call of null. An empty entry must not stand for it under version 0.
  static constexpr std::uint64_t k_cipher_of_none = 0xd1b54a32d192ed03u;

  /// One-to-one in the cipher, as are odd factors and shifts that are added. Versions that are near each other differ
  /// in all bits of a value.
  static constexpr std::uint64_t mix(const Value& value, std::uint64_t cipher_of_version) noexcept {
    const std::uint64_t mixed = spread(value.digest() ^ cipher_of_version);
    return mixed ^ mixed >> 32;
  }

  /// Copies word by word. A copy of the whole array would read 16 bytes right after two stores of 8, and wait until
  /// both are in the cache.
  template <std::size_t... I>
  [[gnu::always_inline]] Value value_of(std::index_sequence<I...>) const noexcept {
    Value value{};
    const auto copy = [&](auto... words) {
      (std::memcpy(reinterpret_cast<std::byte*>(&value) + I * sizeof words, &words, sizeof words), ...);
    };
    copy(words_[I].load(std::memory_order_acquire)...);
    return value;
  }

  std::array<std::atomic<std::uint64_t>, k_words> words_{};
  std::atomic<std::uint64_t> key_{0};
};

}  // namespace jitunwind
#pragma GCC visibility pop
