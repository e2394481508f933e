// One entry of a table that many threads and signal handlers read and write at once, and where nobody waits.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace jitunwind {

/// A value under its key, behind a sequence lock that is tried, not taken. A reader that meets a writer finds nothing;
/// a writer that meets another leaves. Thread-safe, signal-safe, constant-initialised. Key and value are plain data of
/// whole words without padding. A new entry has a key of zeros, which nobody may ask for.
///
/// Every word is released by its writer and acquired by its reader. So a reader that sees a word of a later sequence
/// sees that sequence, too (Boehm, "Can seqlocks get along with programming language memory models?", 2012).
template <class Key, class Value>
class SequencedEntry {
 public:
  bool find(const Key& key, Value& out) const noexcept {
    const std::uint64_t sequence = sequence_.load(std::memory_order_acquire);
    if (!holds(std::bit_cast<Words<Key>>(key))) return false;
    return find_words(std::make_index_sequence<k_words<Value>>(), sequence, out);
  }

  void keep(const Key& key, const Value& value) noexcept {
    std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    if (sequence % 2 != 0) return;
    if (!sequence_.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire)) return;
    store(std::bit_cast<Words<Key>>(key), key_);
    store(std::bit_cast<Words<Value>>(value), value_);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  /// Writes what is there.
  void touch() noexcept { sequence_.fetch_or(0, std::memory_order_relaxed); }

  // Tables choose by these which entry to overwrite. They may be out of date at once.
  std::uint64_t first_word_of_key() const noexcept { return key_[0].load(std::memory_order_relaxed); }
  std::uint64_t times_kept() const noexcept { return sequence_.load(std::memory_order_relaxed) / 2; }

 private:
  template <class T>
  static constexpr std::size_t k_words = sizeof(T) / sizeof(std::uint64_t);
  template <class T>
  using Words = std::array<std::uint64_t, k_words<T>>;
  template <class T>
  using AtomicWords = std::array<std::atomic<std::uint64_t>, k_words<T>>;
  template <class T>
  static constexpr bool k_whole_words = sizeof(Words<T>) == sizeof(T) && std::has_unique_object_representations_v<T>;
  static_assert(k_whole_words<Key> && k_whole_words<Value>);

  /// Copies word by word. A copy of the whole array would read 16 bytes right after two stores of 8, and wait until
  /// both are in the cache.
  template <std::size_t... I>
  [[gnu::always_inline]] bool find_words(std::index_sequence<I...>, std::uint64_t sequence, Value& out) const noexcept {
    const auto copy = [&](auto... words) {
      if (sequence % 2 != 0 || sequence_.load(std::memory_order_relaxed) != sequence) return false;
      (std::memcpy(reinterpret_cast<std::byte*>(&out) + I * sizeof words, &words, sizeof words), ...);
      return true;
    };
    return copy(value_[I].load(std::memory_order_acquire)...);
  }

  bool holds(const Words<Key>& key) const noexcept {
    for (std::size_t i = 0; i < key.size(); ++i)
      if (key_[i].load(std::memory_order_acquire) != key[i]) return false;
    return true;
  }

  template <std::size_t N>
  static void store(const std::array<std::uint64_t, N>& words, std::array<std::atomic<std::uint64_t>, N>& to) noexcept {
    for (std::size_t i = 0; i < N; ++i) to[i].store(words[i], std::memory_order_release);
  }

  std::atomic<std::uint64_t> sequence_{0};  // odd while it is written
  AtomicWords<Key> key_{};
  AtomicWords<Value> value_{};
};

}  // namespace jitunwind
#pragma GCC visibility pop
