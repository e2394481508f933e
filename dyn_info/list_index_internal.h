// The procedures that a target's list had under one generation, by address.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// What is kept of a list so that it is walked once for each generation and not for each question. Where procedures
/// overlap the newest one answers. Used by one thread at a time.
class ListIndex {
 public:
  struct Procedure {
    AddrRange code{};
    Addr descriptor = 0;
  };

  /// Whether it is of that list, head and generation.
  bool is_of(Addr list, std::uint32_t generation) const noexcept {
    return is_known_ && list == list_ && generation == generation_;
  }
  bool is_known() const noexcept { return is_known_; }
  /// `procedures` as in the list, the newest first, none of them empty. False: there is no memory, and nothing is
  /// known.
  bool make(Addr list, std::uint32_t generation, std::span<const Procedure> procedures) noexcept;
  void forget() noexcept { is_known_ = false; }

  /// The descriptor of the newest procedure that covers `at`; 0: none does. O(log n).
  Addr find(Addr at) const noexcept;

 private:
  /// Up to where the next one begins; descriptor 0: code of nobody.
  struct Stretch {
    Addr begin = 0;
    Addr descriptor = 0;
  };
  void make_stretches(std::span<const Procedure> procedures);
  /// False, and nothing is added: they overlap.
  static bool add_disjoint(std::span<const Procedure> ascending, std::vector<Stretch>& stretches);
  static void add_overlapping(std::span<const Procedure> procedures, std::vector<Stretch>& stretches);

  std::vector<Stretch> stretches_;  // ascending
  Addr list_ = 0;
  std::uint32_t generation_ = 0;
  bool is_known_ = false;
};

}  // namespace jitunwind
