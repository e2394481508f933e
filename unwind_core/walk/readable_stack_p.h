// The part of its stack that a walk of addresses may read.
#pragma once

#include <algorithm>

#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {

/// The stack that a walk is on, as far as it can be read.
class ReadableStack {
 public:
  explicit ReadableStack(Addr sp) noexcept : range_(known_stack(sp)), is_known_(!range_.empty()) {
    if (!is_known_) range_ = {page_of(sp), page_of(sp)};
  }
  /// Whether the walk may read these bytes; perhaps after a probe.
  bool has(Addr first, Addr end) noexcept {
    return first < end && ((first >= range_.begin && end <= range_.end) || reach(first, end));
  }
  bool is_known() const noexcept { return is_known_; }
  /// A frame's SP may be the end.
  bool holds_frame(Addr sp) const noexcept { return sp >= range_.begin && sp <= range_.end; }
  AddrRange range() const noexcept { return range_; }
  Addr end() const noexcept { return range_.end; }
  /// Neither probes again what the other has probed of this stack.
  void share_with(Cursor& cursor) noexcept {
    AddrRange all = range_;
    if (const AddrRange theirs = cursor.proven(); !theirs.empty()) {
      if (theirs.end < all.begin || theirs.begin > all.end) return;
      all = {std::min(all.begin, theirs.begin), std::max(all.end, theirs.end)};
    }
    if (!is_known_) range_ = all;
    cursor.set_proven(all);
  }
  /// Probes other stacks page by page, for this walk alone.
  [[gnu::noinline]] bool reach(Addr first, Addr end) noexcept {
    if (is_known_ || first < range_.begin || end < first || end - range_.end > k_farthest) return false;
    range_.end = first_unreadable_page(range_.end, page_of(end - 1) + k_page_size);
    return end <= range_.end;
  }

 private:
  static constexpr Addr k_farthest = Addr{1} << 20;
  AddrRange range_;
  bool is_known_;
};

}  // namespace jitunwind
