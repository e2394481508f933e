// A pool that keeps each row once: a FrameRow has a KiB, and a procedure may have a million rows, of which only a few
// dozen differ.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind {

/// Rows are equal if and only if their addresses are. The memory of their expressions must outlive the pool.
class RowPool {
 public:
  RowPool() = default;
  RowPool(const RowPool&) = delete;
  RowPool& operator=(const RowPool&) = delete;

  /// The row equal to this one, without range and origin; a copy is made for the first. Valid as long as the pool.
  const FrameRow* keep(const FrameRow& row) {
    const std::uint64_t hash = hash_of(row);
    const auto [begin, end] = by_hash_.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (*it->second == row) return it->second;
    FrameRow& kept = rows_.emplace_back(row);
    kept.range = {};
    kept.origin = RowOrigin::none;
    by_hash_.emplace(hash, &kept);
    return &kept;
  }

 private:
  static std::uint64_t hash_of(const FrameRow& row) noexcept {
    std::uint64_t hash = hash_with(row.cfa.reg, static_cast<std::uint64_t>(row.cfa.offset));
    hash = hash_with(hash, static_cast<std::uint64_t>(row.cfa.add) ^ row.args_size);
    for (const FrameRow::Entry& e : row.entries())
      hash = hash_with(hash, (std::uint64_t{e.reg} << 32 | e.rule.reg) ^
                                 (e.rule.has_expression() ? 0 : static_cast<std::uint64_t>(e.rule.offset)));
    return hash;
  }

  std::deque<FrameRow> rows_;
  std::unordered_multimap<std::uint64_t, const FrameRow*> by_hash_;
};

}  // namespace jitunwind
