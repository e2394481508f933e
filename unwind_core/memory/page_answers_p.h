// The kernel's recent answers about pages. Nothing reports when mappings change, so no answer holds for long.
#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// A period for which facts about memory are assumed to hold. A profiler makes many walks within one moment; an
/// occasional walk finds out everything anew.
class Moment {
 public:
  /// Nanoseconds: a quarter of a second.
  static constexpr std::uint64_t k_length = std::uint64_t{1} << 28;

  constexpr explicit Moment(std::uint64_t nanoseconds) noexcept : number_(nanoseconds / k_length) {}
  /// There is no moment without a clock. Signal-safe, and without a system call where the vDSO has the clock.
  static std::optional<Moment> now() noexcept {
    timespec t;
    if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &t) != 0) return std::nullopt;
    return Moment(static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec));
  }
  constexpr std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_;
};

/// Whether a page may be executed; nothing if that is unknown.
using PageAnswer = std::optional<bool>;

/// One word holds the answer for a page, so nobody waits and nobody sees a partial answer. Constant-initialised,
/// thread-safe, signal-safe.
class PageAnswers {
 public:
  /// The addresses of programs have fewer bits on every CPU.
  static constexpr unsigned k_address_bits = 56;

  /// Returns false when there is no answer of this moment. Precondition: `at` has k_address_bits bits.
  bool find(Addr at, Moment moment, PageAnswer& out) const noexcept {
    const std::uint64_t word = word_of(at).load(std::memory_order_relaxed);
    if ((word & ~k_answer_mask) != question(at, moment) || (word & k_answer_mask) == 0) return false;
    out = (word & k_answer_mask) == k_unknown ? PageAnswer() : PageAnswer((word & k_answer_mask) == k_yes);
    return true;
  }
  void keep(Addr at, Moment moment, PageAnswer answer) noexcept {
    const std::uint64_t code = !answer ? k_unknown : *answer ? k_yes : k_no;
    word_of(at).store(question(at, moment) | code, std::memory_order_relaxed);
  }

 private:
  // A word holds the page's number in its upper bits, plus the spread number of the moment, and the answer in its
  // lowest bits. Words of one page differ for 2^62 moments, and words of one moment differ for all pages.
  static constexpr unsigned k_page_bits = 12, k_answer_bits = 2;
  static constexpr unsigned k_page_at = 64 - (k_address_bits - k_page_bits);
  static constexpr std::uint64_t k_answer_mask = (1u << k_answer_bits) - 1;
  static constexpr std::uint64_t k_no = 1, k_yes = 2, k_unknown = 3;
  static constexpr unsigned k_bits = 8;
  static_assert(k_page_size == Addr{1} << k_page_bits);

  static constexpr std::uint64_t question(Addr at, Moment moment) noexcept {
    return ((at >> k_page_bits) << k_page_at) + (spread(moment.number()) << k_answer_bits);
  }
  const std::atomic<std::uint64_t>& word_of(Addr at) const noexcept {
    return words_[table_place(at >> k_page_bits, k_bits)];
  }
  std::atomic<std::uint64_t>& word_of(Addr at) noexcept { return words_[table_place(at >> k_page_bits, k_bits)]; }

  std::array<std::atomic<std::uint64_t>, std::size_t{1} << k_bits> words_{};
};

}  // namespace jitunwind
