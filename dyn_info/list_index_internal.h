// The procedures that a target's list had under one generation, by address.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// What is kept of a list so that it is walked once and not for each question, and not again where it is known what has
/// changed. Where procedures overlap the newest one answers. Used by one thread at a time.
class ListIndex {
 public:
  struct Procedure {
    AddrRange code{};
    Addr descriptor = 0;
  };
  /// `procedure` was registered, or cancelled.
  struct Change {
    Procedure procedure{};
    bool is_registered = false;
  };

  /// Whether it is of that list, head and generation.
  bool is_of(Addr list, std::uint32_t generation) const noexcept {
    return is_known_ && list == list_ && generation == generation_;
  }
  bool is_of(Addr list) const noexcept { return is_known_ && list == list_; }
  bool is_known() const noexcept { return is_known_; }
  /// Whether the newest procedure may be the one whose descriptor is there; 0: there is none. Of two lists that have
  /// the same place and generation one after the other, as of another libunwind that is loaded anew, it tells most.
  bool may_begin_with(Addr descriptor) const noexcept { return !newest_ || *newest_ == descriptor; }
  /// `procedures` as in the list, the newest first, none of them empty; how many changes had made it what it is, if
  /// that is known. False: there is no memory, and nothing is known.
  bool make(Addr list, std::uint32_t generation, std::span<const Procedure> procedures,
            std::optional<std::uint64_t> changes = {}) noexcept;
  /// How many changes had made the list what is known of it; nothing: it is not known how many, or nothing is.
  std::optional<std::uint64_t> changes() const noexcept { return is_known_ ? changes_ : std::nullopt; }
  /// What is known becomes what it is under another generation, after `changes`, the oldest first. False: they do not
  /// fit what was known, or there are procedures that overlap, and nothing is known. O(changes * log procedures), and
  /// for each 512 changes O(procedures).
  bool change(std::uint32_t generation, std::span<const Change> changes) noexcept;
  void forget() noexcept { is_known_ = false; }

  /// The descriptor of the newest procedure that covers `at`; 0: none does. O(log n).
  Addr find(Addr at) const noexcept;

 private:
  /// Up to where the next one begins; descriptor 0: code of nobody.
  struct Stretch {
    Addr begin = 0;
    Addr descriptor = 0;
  };
  static constexpr Addr k_as_before = ~Addr{0};  ///< a descriptor of `changed_`: what `stretches_` say
  void make_stretches(std::span<const Procedure> procedures);
  bool change(const Change& change);
  void merge();
  static Stretch stretch_at(const std::vector<Stretch>& stretches, Addr at, Addr& end) noexcept;
  Stretch known_at(Addr at, Addr& end) const noexcept;
  static void assign(std::vector<Stretch>& stretches, AddrRange range, Addr descriptor);
  /// False, and nothing is added: they overlap.
  static bool add_disjoint(std::span<const Procedure> ascending, std::vector<Stretch>& stretches);
  static void add_overlapping(std::span<const Procedure> procedures, std::vector<Stretch>& stretches);

  std::vector<Stretch> stretches_;  // ascending
  std::vector<Stretch> changed_;    // since these were made; few
  std::optional<std::uint64_t> changes_;
  std::optional<Addr> newest_;  // a descriptor; nothing: not known
  bool is_disjoint_ = false;
  Addr list_ = 0;
  std::uint32_t generation_ = 0;
  bool is_known_ = false;
};

}  // namespace jitunwind
