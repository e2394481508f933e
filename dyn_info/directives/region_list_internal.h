// Region lists in any memory: headers and directives in host byte order, and the directives of one region, grouped by
// the instruction that they belong to. This file knows when a directive takes effect, but not its effect.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind {

/// A longer list is refused (e_cycle). A region with more directives is, too, if there is no STOP among the first of
/// them.
inline constexpr std::uint32_t k_max_regions = 4096;
inline constexpr std::uint32_t k_max_ops = 65536;

/// Effective `when` of directives in force before the region's first instruction.
inline constexpr std::int64_t k_when_entry = -1;
/// A time later than every directive.
inline constexpr std::int64_t k_when_end = std::numeric_limits<std::int64_t>::max();

/// docs/directives.md "When a directive takes effect". `last`: when of the region's last instruction; an empty region
/// has none but its entry: k_when_entry = length - 1. `latest`: the latest when of the directives before it in the
/// list.
inline std::int64_t effective_when(const unw_dyn_op_t& op, std::int64_t last, std::int64_t latest) noexcept {
  if (op.when >= 0 && op.when <= last) return op.when;
  if (op.tag == UNW_DYN_LABEL_STATE && op.when < 0) return latest;
  return std::max(std::min<std::int64_t>(op.when, last), k_when_entry);
}

struct RegionHeader {
  Addr at = 0;
  Addr next = 0;  ///< 0: last region
  std::int32_t insn_count = 0;
  std::uint32_t op_count = 0;

  /// The length in instruction units.
  std::int64_t length() const noexcept {
    const std::int64_t n = insn_count;
    return n < 0 ? -n : n;
  }
};

/// The memory of regions. Directives are given in host byte order, `val` sign-extended from the target's word.
class RegionReader {
 public:
  virtual Status read_header(Addr at, RegionHeader& out) const noexcept = 0;
  /// Reads at least one of the directives from `first` on (first < op_count): in place, or copied into `buffer`.
  virtual Result<std::span<const unw_dyn_op_t>> read_ops(const RegionHeader& region, std::uint32_t first,
                                                         std::span<unw_dyn_op_t> buffer) const noexcept = 0;

 protected:
  ~RegionReader() = default;
};

/// Regions of this process, read in place: memory that a registered descriptor points to is valid until it is
/// cancelled.
class [[gnu::visibility("default")]] LocalRegionReader final : public RegionReader {
 public:
  Status read_header(Addr at, RegionHeader & out) const noexcept override;
  Result<std::span<const unw_dyn_op_t>> read_ops(const RegionHeader& region, std::uint32_t first,
                                                 std::span<unw_dyn_op_t> buffer) const noexcept override;
};

/// Regions in the memory of a target, with its word size and byte order.
class [[gnu::visibility("default")]] MemoryRegionReader final : public RegionReader {
 public:
  MemoryRegionReader(const Memory& memory, MemoryWindow& window, const Arch& arch) noexcept
      : memory_(memory), window_(window), arch_(arch) {}
  Status read_header(Addr at, RegionHeader & out) const noexcept override;
  Result<std::span<const unw_dyn_op_t>> read_ops(const RegionHeader& region, std::uint32_t first,
                                                 std::span<unw_dyn_op_t> buffer) const noexcept override;

 private:
  const Memory& memory_;
  MemoryWindow& window_;
  const Arch& arch_;
};

/// Bounds the work of one lookup for any list: number of directives examined, repetitions included. It is enough for
/// all directives that a region may have, in almost any order.
struct WorkBudget {
  std::uint32_t ops_left = 1u << 26;
  void take(std::uint32_t ops) noexcept { ops_left -= std::min(ops, ops_left); }
};

/// The directives of one region up to STOP, in groups of one effective `when`, earliest first. The list may be in any
/// order. It is never sorted in place, since other procedures, threads and processes read it. A list in order is read
/// straight through. Otherwise the k_indexed earliest ones are sorted by index here, and then the earliest of the rest.
///
/// A read that fails ends every loop early and shows in `failure()`.
class [[gnu::visibility("default")]] RegionOps {
 public:
  RegionOps(const RegionReader& reader, WorkBudget& budget) noexcept : reader_(reader), budget_(budget) {}
  RegionOps(const RegionOps&) = delete;
  RegionOps& operator=(const RegionOps&) = delete;

  Status open(const RegionHeader& region) noexcept;

  /// Goes to the next group; false at the end.
  bool next_group() noexcept;
  /// The effective `when` of the current group.
  std::int64_t when() const noexcept { return when_; }
  /// The directives of the current group in list order: rewind, then next_op until null.
  void rewind() noexcept {
    if (by_search_) return rewind_list();
    position_ = group_begin_;
  }
  const unw_dyn_op_t* next_op() noexcept {
    if (!sorted_) return next_indexed_op();
    if (position_ == group_end_) return nullptr;
    index_ = position_++;
    return op(index_);
  }

  /// All directives in list order, of any group: rewind_list, then next_listed until null.
  void rewind_list() noexcept {
    position_ = 0;
    latest_ = k_when_entry;
  }
  const unw_dyn_op_t* next_listed() noexcept {
    if (position_ == count_) return nullptr;
    const unw_dyn_op_t* const found = budget_.ops_left == 0 ? read_op(position_) : op(position_);
    if (!found) return nullptr;
    budget_.take(1);
    index_ = position_++;
    listed_when_ = effective_when(*found, latest_);
    latest_ = std::max(latest_, listed_when_);
    return found;
  }
  /// Effective `when` of the directive that next_listed returned.
  std::int64_t listed_when() const noexcept { return listed_when_; }
  /// The position in the list of the directive that next_op or next_listed returned.
  std::uint32_t index() const noexcept { return index_; }

  std::uint32_t count() const noexcept { return count_; }
  /// Effective `when` of the first ALIAS.
  std::optional<std::int64_t> alias_when() const noexcept {
    return alias_when_ == k_when_end ? std::nullopt : std::optional(alias_when_);
  }
  /// The position of the first directive with an unknown tag.
  std::optional<std::uint32_t> unknown_tag() const noexcept { return unknown_tag_; }
  const std::optional<Error>& failure() const noexcept { return failure_; }

 private:
  static constexpr std::uint32_t k_indexed = 64;
  struct Indexed {
    std::int32_t when;
    std::uint32_t index;
  };

  const unw_dyn_op_t* op(std::uint32_t i) noexcept {
    return i - chunk_first_ < chunk_.size() ? &chunk_[i - chunk_first_] : read_op(i);
  }
  std::uint32_t end_of_chunk() const noexcept { return chunk_first_ + static_cast<std::uint32_t>(chunk_.size()); }
  /// Fails if no work is left.
  const unw_dyn_op_t* read_op(std::uint32_t i) noexcept;
  std::int64_t effective_when(const unw_dyn_op_t& op, std::int64_t latest) const noexcept {
    return jitunwind::effective_when(op, last_when_, latest);
  }
  bool next_sorted_group() noexcept;
  const unw_dyn_op_t* next_indexed_op() noexcept;
  bool next_indexed_group() noexcept;
  void index_from(std::int64_t when) noexcept;
  void take_indexed_group() noexcept;

  const RegionReader& reader_;
  WorkBudget& budget_;
  RegionHeader region_{};
  std::uint32_t count_ = 0;
  std::int64_t last_when_ = 0;  // of the region's last instruction
  bool sorted_ = true;
  std::int64_t alias_when_ = k_when_end;
  std::optional<std::uint32_t> unknown_tag_;
  std::optional<Error> failure_;

  std::int64_t when_ = k_when_entry - 1;
  std::uint32_t group_begin_ = 0;  // index in the list, or in order_
  std::uint32_t group_end_ = 0;
  std::uint32_t position_ = 0;
  std::uint32_t index_ = 0;
  std::int64_t listed_when_ = k_when_entry;
  std::int64_t latest_ = k_when_entry;  // latest effective `when` of the directives before position_ in the list

  std::span<const unw_dyn_op_t> chunk_{};
  std::uint32_t chunk_first_ = 0;
  std::array<unw_dyn_op_t, 8> buffer_;
  std::array<Indexed, k_indexed> order_;
  std::uint32_t order_size_ = 0;
  bool all_indexed_ = false;  // no directive is later than those in order_
  bool by_search_ = false;    // the group has more directives than order_ holds: it is read from the list
};

}  // namespace jitunwind
