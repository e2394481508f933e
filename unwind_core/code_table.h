// What was found of code before, by address: kept for as long as nothing has changed there.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "unwind_core/address.h"
#include "unwind_core/hash.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// 8192 answers, two places for each address, in memory that is touched where it is used. An answer is plain data of
/// whole words without padding. Thread-safe, signal-safe, nobody waits: a reader that meets a writer finds nothing, a
/// writer that meets another leaves. Constant-initialised.
///
/// Every word is released by its writer and acquired by its reader: a reader that sees one of a later sequence sees
/// that sequence, too (Boehm, "Can seqlocks get along with programming language memory models?", 2012).
template <class A>
class CodeTable {
 public:
  using Answer = A;
  struct Question {
    Addr at = 0;                ///< CodeAddress::lookup()
    std::uint64_t version = 0;  ///< as it was before the answer was looked for; 0 finds and keeps nothing
  };

  bool find(const Question& question, Answer& out) const noexcept {
    if (question.version == 0) return false;
    const Set& set = sets_[set_of(question.at)];
    return read(set[0], question, out) || read(set[1], question, out);
  }

  /// Forgets an older answer in its place.
  void keep(const Question& question, const Answer& answer) noexcept {
    if (question.version == 0) return;
    Set& set = sets_[set_of(question.at)];
    // The same address again, or the place that was written less often.
    const auto at = [&](std::size_t i) { return set[i].at.load(std::memory_order_relaxed); };
    const auto sequence_of = [&](std::size_t i) { return set[i].sequence.load(std::memory_order_relaxed); };
    const std::size_t place = at(0) == question.at   ? 0
                              : at(1) == question.at ? 1
                                                     : static_cast<std::size_t>(sequence_of(1) < sequence_of(0));
    Entry& entry = set[place];
    std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
    if (sequence % 2 != 0) return;
    if (!entry.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire)) return;
    const Words words = std::bit_cast<Words>(answer);
    entry.at.store(question.at, std::memory_order_release);
    entry.version.store(question.version, std::memory_order_release);
    for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_release);
    entry.sequence.store(sequence + 2, std::memory_order_release);
  }

 private:
  static constexpr unsigned k_set_bits = 12;
  using Words = std::array<std::uint64_t, sizeof(Answer) / sizeof(std::uint64_t)>;
  static_assert(sizeof(Words) == sizeof(Answer) && std::is_trivially_copyable_v<Answer>);

  struct alignas(64) Entry {
    std::atomic<std::uint64_t> sequence{0};  // odd while it is written
    std::atomic<std::uint64_t> at{0};
    std::atomic<std::uint64_t> version{0};
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words{};
  };
  static_assert(sizeof(Entry) == 64, "a cache line");
  using Set = std::array<Entry, 2>;

  static std::size_t set_of(Addr at) noexcept { return table_place(at, k_set_bits); }

  static bool read(const Entry& entry, const Question& question, Answer& out) noexcept {
    const std::uint64_t sequence = entry.sequence.load(std::memory_order_acquire);
    if (entry.at.load(std::memory_order_acquire) != question.at) return false;
    if (entry.version.load(std::memory_order_acquire) != question.version) return false;
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
    if (sequence % 2 != 0 || entry.sequence.load(std::memory_order_relaxed) != sequence) return false;
    out = std::bit_cast<Answer>(words);
    return true;
  }

  std::array<Set, std::size_t{1} << k_set_bits> sets_{};
};

}  // namespace jitunwind
#pragma GCC visibility pop
