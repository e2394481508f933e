// What was found of code before, by address: kept for as long as nothing has changed there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unwind_core/address.h"
#include "unwind_core/hash.h"
#include "unwind_core/sequenced_entry.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// 8192 answers, two places for each address, in memory that is touched where it is used. Thread-safe, signal-safe,
/// nobody waits: see SequencedEntry, whose rules hold for answers. Constant-initialised.
template <class A>
class CodeTable {
 public:
  using Answer = A;
  struct Question {
    Addr at = 0;                ///< CodeAddress::lookup()
    std::uint64_t version = 0;  ///< as it was before the answer was looked for; 0 finds and keeps nothing
  };

  static constexpr std::size_t k_size = 8192;

  bool find(const Question& question, Answer& out) const noexcept {
    if (question.version == 0) return false;
    const Set& set = sets_[set_of(question.at)];
    return set[0].find(question, out) || set[1].find(question, out);
  }

  /// Forgets an older answer in its place.
  void keep(const Question& question, const Answer& answer) noexcept {
    if (question.version == 0) return;
    Set& set = sets_[set_of(question.at)];
    // The same address again, or the place that was written less often.
    const bool second = set[0].first_word_of_key() != question.at &&
                        (set[1].first_word_of_key() == question.at || set[1].times_kept() < set[0].times_kept());
    set[second ? 1 : 0].keep(question, answer);
  }

 private:
  static constexpr unsigned k_set_bits = 12;
  struct alignas(64) Entry : SequencedEntry<Question, Answer> {};
  static_assert(sizeof(Entry) == 64, "a cache line");
  using Set = std::array<Entry, 2>;

  static std::size_t set_of(Addr at) noexcept { return table_place(at, k_set_bits); }

  std::array<Set, std::size_t{1} << k_set_bits> sets_{};
  static_assert(sizeof(Set) / sizeof(Entry) << k_set_bits == k_size);
};

}  // namespace jitunwind
#pragma GCC visibility pop
