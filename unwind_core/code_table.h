// What was found of code before, by address: kept for as long as nothing has changed there.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "unwind_core/address.h"
#include "unwind_core/hash.h"
#include "unwind_core/sequenced_entry.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Zeroed memory that is never given back; null: there is none. Not signal-safe.
void* map_for_good(std::size_t size) noexcept;
/// Gives back what nobody has seen.
void unmap_unseen(void* memory, std::size_t size) noexcept;

struct CodeQuestion {
  Addr at = 0;                ///< CodeAddress::lookup()
  std::uint64_t version = 0;  ///< as it was before the answer was looked for; 0 finds and keeps nothing
};

/// 8192 answers or more, two places for each address, in memory that is touched where it is used: two pages, until they
/// are crowded; what was kept then is forgotten. Thread-safe, signal-safe, nobody waits: see SequencedEntry, whose
/// rules hold for answers. Constant-initialised.
template <class A>
class CodeTable {
 public:
  using Answer = A;
  using Question = CodeQuestion;

  static constexpr std::size_t k_size = 8192;  ///< to begin with

  [[gnu::always_inline]] bool find(const Question& question, Answer& out) const noexcept {
    if (question.version == 0) return false;
    const Set& set = set_of(*this, question.at);
    return set[0].find(question, out) || set[1].find(question, out);
  }

  /// Forgets an older answer in its place.
  void keep(const Question& question, const Answer& answer) noexcept {
    if (question.version == 0) return;
    Set& set = set_of(*this, question.at);
    // The same address again, or the place that was written less often.
    const bool second = set[0].first_word_of_key() != question.at &&
                        (set[1].first_word_of_key() == question.at || set[1].times_kept() < set[0].times_kept());
    Entry& entry = set[second ? 1 : 0];
    const bool displaces = entry.times_kept() != 0 && entry.first_word_of_key() != question.at;
    if (displaces && displaced_.fetch_add(1, std::memory_order_relaxed) == k_crowded)
      more_bits_.store(k_set_bits - k_first_set_bits, std::memory_order_relaxed);
    entry.keep(question, answer);
  }

  /// Has the pages of a small table, lest the first walk is the first to touch them: 2 us each on a virtual machine.
  void touch() noexcept {
    for (std::size_t place = 0; place < std::size_t{1} << k_first_set_bits; place += 4096 / sizeof(Set))
      sets_[place][0].touch();
    more_bits_.fetch_or(0, std::memory_order_relaxed);
  }

  /// Makes room for `size` answers or more; what is in the table when it grows is forgotten. It never shrinks. False:
  /// no memory, and nothing has changed. Thread-safe, not signal-safe.
  bool reserve(std::size_t size) noexcept {
    if (size <= k_size) return true;
    if (size > ~std::size_t{0} / sizeof(Set)) return false;
    const auto set_bits = static_cast<unsigned>(std::bit_width(size - 1)) - 1;
    Grown* before = grown_.load(std::memory_order_acquire);
    if (before && before->set_bits >= set_bits) return true;
    const std::size_t bytes = sizeof(Grown) + (sizeof(Set) << set_bits);
    void* const memory = map_for_good(bytes);
    if (!memory) return false;
    Grown* const larger = new (memory) Grown{set_bits};
    // Readers and writers of the one before may go on in it.
    while (!grown_.compare_exchange_weak(before, larger, std::memory_order_acq_rel, std::memory_order_acquire)) {
      if (!before || before->set_bits < set_bits) continue;
      unmap_unseen(memory, bytes);
      break;
    }
    return true;
  }

 private:
  static constexpr unsigned k_set_bits = 12;
  static constexpr unsigned k_first_set_bits = 6;
  /// So many answers took another one's place; then all of the table is used.
  static constexpr std::uint32_t k_crowded = 32;
  struct alignas(64) Entry : SequencedEntry<Question, Answer> {};
  static_assert(sizeof(Entry) == 64, "a cache line");
  using Set = std::array<Entry, 2>;

  /// In front of its sets, which zeros are.
  struct alignas(64) Grown {
    unsigned set_bits;
    Set& operator[](std::size_t place) noexcept { return reinterpret_cast<Set*>(this + 1)[place]; }
  };

  /// Where landing pads meet, calls are 5 bytes apart: two answers for every 8 bytes.
  static constexpr std::size_t place_of(Addr at, unsigned bits) noexcept { return code_table_place(at, bits, 3); }

  template <class Table>
  static auto& set_of(Table& table, Addr at) noexcept {
    Grown* const grown = table.grown_.load(std::memory_order_acquire);
    const unsigned bits = k_first_set_bits + table.more_bits_.load(std::memory_order_relaxed);
    return grown ? (*grown)[place_of(at, grown->set_bits)] : table.sets_[place_of(at, bits)];
  }

  alignas(4096) std::array<Set, std::size_t{1} << k_set_bits> sets_{};
  std::atomic<Grown*> grown_{nullptr};
  std::atomic<std::uint32_t> more_bits_{0};  // once it is crowded
  std::atomic<std::uint32_t> displaced_{0};
  static_assert(sizeof(Set) / sizeof(Entry) << k_set_bits == k_size);
};

}  // namespace jitunwind
#pragma GCC visibility pop
