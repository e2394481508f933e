// Hints from the last throw: numbers of the entries it found in tables (unwind_core/kept/code_table_p.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind::eh {

/// Numbers that spare a search by address. Any number may be wrong: its user checks whether the entry covers the
/// address, as with the links of rules. Thread-safe, signal-safe, constant-initialised. The lower halves of numbers are
/// kept; entries of a larger table are searched.
class EntryHints {
 public:
  /// The entry of the rule of code where a walk begins, which no rule of a callee links to: `_Unwind_Resume()` is
  /// called at the end of each cleanup.
  std::uint32_t first_rule(Addr at) const noexcept {
    return first_rules_[place_of(at)].load(std::memory_order_relaxed);
  }
  void expect_rule(Addr at, std::uint32_t number) noexcept { keep(first_rules_[place_of(at)], number); }

  /// The entry of a procedure's facts, by the entry of the rule of a place in it. Entries of one stack are mostly
  /// neighbours, and so are the hints.
  std::uint32_t facts(std::uint32_t rule) const noexcept {
    return facts_[rule % k_rules].load(std::memory_order_relaxed);
  }
  void expect_facts(std::uint32_t rule, std::uint32_t number) noexcept { keep(facts_[rule % k_rules], number); }

  /// Writes to the pages that the first throw needs, so that it has no page faults there.
  void touch() noexcept {
    first_rules_[0].fetch_or(0, std::memory_order_relaxed);
    facts_[0].fetch_or(0, std::memory_order_relaxed);
  }

 private:
  using Hint = std::atomic<std::uint16_t>;
  static constexpr unsigned k_first_bits = 11;
  static constexpr std::size_t k_rules = std::size_t{1} << 14;  ///< more than a table begins with

  static std::size_t place_of(Addr at) noexcept { return table_place(at, k_first_bits); }
  static void keep(Hint& hint, std::uint32_t number) noexcept {
    hint.store(static_cast<std::uint16_t>(number), std::memory_order_relaxed);
  }

  alignas(4096) std::array<Hint, std::size_t{1} << k_first_bits> first_rules_{};
  std::array<Hint, k_rules> facts_{};
};

}  // namespace jitunwind::eh
