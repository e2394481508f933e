// How to find a frame's caller when nothing but addresses is wanted: 16 bytes for each place in code that was walked
// before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind_core/compact_row.h"
#include "unwind_core/hash.h"

namespace jitunwind {

/// What a step needs of a row if pc, SP and the frame pointer are all that the walk keeps, in one word. The upper bits
/// are a guess, which entry of the table the caller's is.
class CallerRule {
 public:
  /// What besides registrations may change the answer.
  enum class Source : unsigned {
    none,
    lasting = 1,  ///< nothing: registered code, or a module that cannot be unloaded
    module = 2,   ///< the module
  };

  /// Rows that are not compact, but frequent. Their return address would be below SP, where none is: that is how a walk
  /// comes to look at what they are.
  enum class Kind : unsigned {
    compact,
    outermost,  ///< the code says that it has no caller
    realigned,  ///< CFA = *(FP - n), FP = *FP: what gcc makes of a function that aligns its stack
    signal,     ///< a signal trampoline: all registers are in the ucontext_t at its SP
  };

  constexpr CallerRule() noexcept = default;
  constexpr explicit CallerRule(std::uint64_t word) noexcept : word_(word) {}
  /// Of any kind but compact. `cfa_below_fp`: words, for realigned ones.
  constexpr CallerRule(Source source, Kind kind, std::uint8_t cfa_below_fp = 0) noexcept
      : word_(of(source) | std::uint64_t{static_cast<unsigned>(kind)} << k_kind_at | std::uint64_t{0xff} << k_fp_at |
              std::uint64_t{0xff} << k_ra_at | std::uint64_t{cfa_below_fp} << k_below_fp_at) {}
  /// `fp_slot`: of the frame pointer, in the row's layout.
  constexpr CallerRule(const CompactRow& row, Source source, bool base_is_frame_pointer, std::size_t fp_slot) noexcept
      : word_(of(source) | row.cfa_words | std::uint64_t{base_is_frame_pointer} << k_base_at |
              std::uint64_t{row.slots[fp_slot] != 0} << k_saves_fp_at |
              std::uint64_t{row.slots[row.slots[fp_slot] != 0 ? fp_slot : CompactLayout::k_return_address]} << k_fp_at |
              std::uint64_t{row.slots[CompactLayout::k_return_address]} << k_ra_at) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr Source source() const noexcept { return static_cast<Source>(word_ >> k_source_at & 3); }
  constexpr bool is_of_module() const noexcept { return (word_ & of(Source::module)) != 0; }
  constexpr Kind kind() const noexcept { return static_cast<Kind>(word_ >> k_kind_at & 3); }
  /// Bytes.
  constexpr std::uint64_t cfa_below_frame_pointer() const noexcept {
    return byte_at(k_below_fp_at) * CompactRow::k_word;
  }
  constexpr bool base_is_frame_pointer() const noexcept { return (word_ >> k_base_at & 1) != 0; }
  /// Bytes.
  constexpr std::uint64_t cfa_offset() const noexcept { return (word_ & 0xffff) * CompactRow::k_word; }
  constexpr std::uint64_t return_address_below_cfa() const noexcept { return byte_at(k_ra_at) * CompactRow::k_word; }
  /// False: the register is as it is in the caller.
  constexpr bool saves_frame_pointer() const noexcept { return (word_ >> k_saves_fp_at & 1) != 0; }
  static constexpr std::uint64_t k_most_below_cfa = 255 * CompactRow::k_word;
  /// Bytes. Where the frame pointer is not saved, the place of the return address: it can be read in any case.
  constexpr std::uint64_t frame_pointer_below_cfa() const noexcept {
    return (static_cast<std::uint32_t>(word_) >> k_fp_at) * CompactRow::k_word;
  }

  constexpr std::size_t guess() const noexcept { return static_cast<std::size_t>(word_ >> k_guess_at); }
  constexpr CallerRule with_guess(std::size_t entry) const noexcept {
    return CallerRule((word_ & k_rule_mask) | std::uint64_t{entry} << k_guess_at);
  }
  constexpr std::uint64_t without_guess() const noexcept { return word_ & k_rule_mask; }
  /// Tells rules from each other as without_guess() does, by one instruction.
  constexpr std::uint64_t shifted_guess_out() const noexcept { return word_ << (64 - k_guess_at); }

 private:
  // What a step asks for is in the lower half: tests of it have operands of 32 bits.
  static constexpr unsigned k_base_at = 16, k_saves_fp_at = 17, k_source_at = 18, k_kind_at = 20, k_fp_at = 24,
                            k_ra_at = 32, k_below_fp_at = 40;
  static constexpr unsigned k_guess_at = 48;
  static constexpr std::uint64_t k_rule_mask = (std::uint64_t{1} << k_guess_at) - 1;

  static constexpr std::uint64_t of(Source source) noexcept {
    return std::uint64_t{static_cast<unsigned>(source)} << k_source_at;
  }
  constexpr std::uint64_t byte_at(unsigned bit) const noexcept { return word_ >> bit & 0xff; }

  std::uint64_t word_ = 0;
};

/// Rules by address, four places for each, in memory that is touched where it is used. Thread-safe, signal-safe, nobody
/// waits. Constant-initialised. It is small, a page, until that is crowded; what was kept then has other places, and is
/// found only by those who guess it, or learned anew.
///
/// An entry is two words that are written and read without order: the rule, and the address under a cipher that the
/// rule and its version make:  key = address ^ mix(rule, version).  mix is one-to-one in the version for each rule, so
/// that under another version an entry never stands for its address. Two words that do not belong together stand for
/// an address with probability 2^-64, as does an entry of another address under another version. An empty one stands
/// for none in code: two words of zeros are for address 0.
class CallerTable {
 public:
  static constexpr unsigned k_bits = 13;
  static constexpr unsigned k_first_bits = 8;
  static constexpr std::size_t k_ways = 4;
  static constexpr std::size_t k_nowhere = ~std::size_t{0};

  CallerRule rule(std::size_t entry) const noexcept {
    return CallerRule(entries_[entry].rule.load(std::memory_order_relaxed));
  }
  /// Of a version, for those who ask by the same one again and again.
  static constexpr std::uint64_t cipher(std::uint64_t version) noexcept { return spread(version); }
  bool holds(std::size_t entry, CallerRule rule, Addr at, std::uint64_t cipher_of_version) const noexcept {
    return (entries_[entry].key.load(std::memory_order_relaxed) ^ mix(rule, cipher_of_version)) == at;
  }
  /// The first of the places where the address may be now.
  std::size_t first_place(Addr at) const noexcept {
    return first_place(at, has_grown_.load(std::memory_order_relaxed) ? k_bits : k_first_bits);
  }
  /// The same in a table of 2^bits entries.
  static constexpr std::size_t first_place(Addr at, unsigned bits) noexcept {
    return code_table_place(at, bits - 2, 5) * k_ways;
  }
  /// Has the pages of a small table, lest the first walk is the first to touch them: 2 us each on a virtual machine.
  void touch() noexcept {
    has_grown_.fetch_or(0, std::memory_order_relaxed);
    entries_[0].rule.fetch_or(0, std::memory_order_relaxed);
  }

  void keep(Addr at, std::uint64_t version, CallerRule rule) noexcept {
    std::size_t place = free_place(at);
    // All are taken: any of them, another one each time.
    if (place == k_nowhere) {
      const std::uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
      if (turn == k_crowded) has_grown_.store(1, std::memory_order_relaxed);
      place = first_place(at) + turn % k_ways;
    }
    entries_[place].rule.store(rule.without_guess(), std::memory_order_relaxed);
    entries_[place].key.store(at ^ mix(rule, cipher(version)), std::memory_order_relaxed);
  }
  /// `rule` as it was when the entry held.
  void guess(std::size_t entry, CallerRule rule, std::size_t callers) noexcept {
    entries_[entry].rule.store(rule.with_guess(callers).word(), std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> rule{0};
    std::atomic<std::uint64_t> key{0};
  };

  std::size_t free_place(Addr at) const noexcept {
    const std::size_t first = first_place(at);
    for (std::size_t place = first; place < first + k_ways; ++place)
      if (entries_[place].rule.load(std::memory_order_relaxed) == 0) return place;
    return k_nowhere;
  }

  /// One-to-one in the version, as are odd factors and shifts that are added. Versions that are near each other differ
  /// in all bits of a rule.
  static constexpr std::uint64_t mix(CallerRule rule, std::uint64_t cipher_of_version) noexcept {
    const std::uint64_t mixed = spread(rule.shifted_guess_out() ^ cipher_of_version);
    return mixed ^ mixed >> 32;
  }

  /// So many times something found no free place; then all of the table is used.
  static constexpr std::uint32_t k_crowded = 16;

  alignas(4096) std::array<Entry, std::size_t{1} << k_bits> entries_{};
  alignas(64) std::atomic<std::uint32_t> turns_{0};
  std::atomic<std::uint32_t> has_grown_{0};
};

}  // namespace jitunwind
