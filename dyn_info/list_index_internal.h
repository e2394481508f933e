// An index by address of the procedures that a target's list had under one generation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

struct WalkedList;  // list_walk_p.h

/// A cache of a list: the list is walked once, not for each lookup, and not again if its changes are known. If
/// procedures overlap, the newest one answers. Used by one thread at a time.
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

  /// Whether the index is that of the list with this head and generation.
  bool is_of(Addr list, std::uint32_t generation) const noexcept {
    return is_known_ && list == list_ && generation == generation_;
  }
  bool is_of(Addr list) const noexcept { return is_known_ && list == list_; }
  bool is_known() const noexcept { return is_known_; }
  /// Whether the newest procedure may be the one whose descriptor is there; 0: there is none. Two lists may have the
  /// same place and generation one after the other, for example those of another libunwind that is loaded anew. This
  /// test tells most of them apart.
  bool may_begin_with(Addr descriptor) const noexcept { return !newest_ || *newest_ == descriptor; }
  /// `procedures` are in the order of the list, the newest first, none of them empty. `changes` is the number of
  /// changes that made the list, if it is known. Returns false when there is no memory; then nothing is known.
  bool make(Addr list, std::uint32_t generation, std::span<const Procedure> procedures,
            std::optional<std::uint64_t> changes = {}) noexcept;
  /// The number of changes that made the known list; empty: the number is not known, or nothing is.
  std::optional<std::uint64_t> changes() const noexcept { return is_known_ ? changes_ : std::nullopt; }
  /// Updates the index to another generation by `changes`, the oldest first. Returns false when they contradict the
  /// known list or procedures overlap; then nothing is known. O(changes * log procedures), and for each 512 changes
  /// O(procedures).
  bool change(std::uint32_t generation, std::span<const Change> changes) noexcept;
  void forget() noexcept { is_known_ = false; }

  /// The descriptor of the newest procedure that covers `at`; 0: none does. O(log n).
  Addr find(Addr at) const noexcept;

 private:
  /// A stretch ends where the next one begins; descriptor 0: it belongs to no procedure.
  struct Stretch {
    Addr begin = 0;
    Addr descriptor = 0;
  };
  static constexpr Addr k_as_before = ~Addr{0};  ///< a descriptor in `changed_`: that in `stretches_` is valid
  void make_stretches(std::span<const Procedure> procedures);
  bool change(const Change& change);
  void merge();
  static Stretch stretch_at(const std::vector<Stretch>& stretches, Addr at, Addr& end) noexcept;
  Stretch known_at(Addr at, Addr& end) const noexcept;
  static void assign(std::vector<Stretch>& stretches, AddrRange range, Addr descriptor);
  /// False: they overlap, and nothing is added.
  static bool add_disjoint(std::span<const Procedure> ascending, std::vector<Stretch>& stretches);
  static void add_overlapping(std::span<const Procedure> procedures, std::vector<Stretch>& stretches);

  std::vector<Stretch> stretches_;  // ascending
  std::vector<Stretch> changed_;    // changes since stretches_ was made; few
  std::optional<std::uint64_t> changes_;
  std::optional<Addr> newest_;  // a descriptor; empty: not known
  bool is_disjoint_ = false;
  Addr list_ = 0;
  std::uint32_t generation_ = 0;
  bool is_known_ = false;
};

/// The index of a list of a target. A library that has lists without an index calls none of its functions. They are
/// virtual and not inline, so that it is linked without them.
class WalkedListIndex : public ListIndex {
 public:
  /// Walks the list. An index is valid only if the generation is the same before and after. Errors: those of
  /// for_each_procedure() and read_list_state(); out_of_memory; unspecified if the list changes meanwhile.
  virtual Status walk(const WalkedList& list) noexcept;
  virtual Addr find_procedure(Addr at) const noexcept;
};

}  // namespace jitunwind
