#include "jitunwind/dyn_info/directives/region_list_internal.h"

#include <algorithm>

namespace jitunwind {
namespace {

const unw_dyn_region_info_t* local(Addr at) noexcept {
  return reinterpret_cast<const unw_dyn_region_info_t*>(static_cast<std::uintptr_t>(at));
}

}  // namespace

Status LocalRegionReader::read_header(Addr at, RegionHeader& out) const noexcept {
  const unw_dyn_region_info_t& region = *local(at);
  out = {at, reinterpret_cast<std::uintptr_t>(region.next), region.insn_count, region.op_count};
  return Done{};
}

Result<std::span<const unw_dyn_op_t>> LocalRegionReader::read_ops(const RegionHeader& region, std::uint32_t first,
                                                                  std::span<unw_dyn_op_t>) const noexcept {
  return std::span<const unw_dyn_op_t>(local(region.at)->op + first, region.op_count - first);
}

const unw_dyn_op_t* RegionOps::read_op(std::uint32_t i) noexcept {
  if (failure_) return nullptr;
  if (budget_.ops_left == 0) {
    failure_ = Error{ErrorCode::too_deep, 0, "region list takes too long to evaluate"};
    return nullptr;
  }
  const auto read = reader_.read_ops(region_, i, buffer_);
  if (!read || read->empty()) {
    failure_ = read ? Error{ErrorCode::truncated, region_.at, "directives of a region"} : read.error();
    return nullptr;
  }
  chunk_ = *read;
  chunk_first_ = i;
  return &chunk_[0];
}

Status RegionOps::open(const RegionHeader& region) noexcept {
  region_ = region;
  chunk_ = {};
  count_ = std::min(region.op_count, k_max_ops);
  sorted_ = true;
  alias_when_ = k_when_end;
  unknown_tag_.reset();
  last_when_ = region.length() - 1;
  std::int64_t latest = k_when_entry;
  for (std::uint32_t i = 0; i < count_;) {
    const unw_dyn_op_t* next = op(i);
    if (!next) return *failure_;
    for (const std::uint32_t end = std::min(count_, end_of_chunk()); i < end; ++i, ++next) {
      if (next->tag == UNW_DYN_STOP) {
        count_ = i;
        break;
      }
      const std::int64_t when = effective_when(*next, latest);
      if (when < latest) sorted_ = false;
      latest = std::max(latest, when);
      if (next->tag == UNW_DYN_ALIAS) alias_when_ = std::min(alias_when_, when);
      if (static_cast<std::uint8_t>(next->tag) > UNW_DYN_ALIAS && !unknown_tag_) unknown_tag_ = i;
    }
  }
  budget_.take(count_ + 1);
  if (count_ == k_max_ops && region.op_count > k_max_ops)
    return Error{ErrorCode::too_deep, region.at, "region with too many directives and no STOP"};
  when_ = k_when_entry - 1;
  group_begin_ = group_end_ = order_size_ = 0;
  all_indexed_ = by_search_ = false;
  return Done{};
}

bool RegionOps::next_group() noexcept { return sorted_ ? next_sorted_group() : next_indexed_group(); }

bool RegionOps::next_sorted_group() noexcept {
  group_begin_ = group_end_;
  if (group_begin_ == count_) return false;
  const unw_dyn_op_t* next = op(group_begin_);
  if (!next) return false;
  when_ = effective_when(*next, std::max(when_, k_when_entry));
  while (++group_end_ < count_) {
    next = op(group_end_);
    if (!next) return false;
    if (effective_when(*next, when_) != when_) break;
  }
  budget_.take(group_end_ - group_begin_);
  return true;
}

/// Indexes the k_indexed earliest directives at `when` or later, in the order of when and list.
void RegionOps::index_from(std::int64_t when) noexcept {
  const auto earlier = [](const Indexed& a, const Indexed& b) {
    return a.when != b.when ? a.when < b.when : a.index < b.index;
  };
  const auto begin = order_.begin();
  std::uint32_t size = 0;
  all_indexed_ = true;
  for (rewind_list(); next_listed();) {
    if (listed_when_ < when) continue;
    const Indexed next{static_cast<std::int32_t>(listed_when_), index_};
    if (size == k_indexed) {  // the latest element of a heap is its first
      all_indexed_ = false;
      if (!earlier(next, order_[0])) continue;
      std::pop_heap(begin, begin + size, earlier);
      --size;
    }
    order_[size++] = next;
    std::push_heap(begin, begin + size, earlier);
  }
  std::sort_heap(begin, begin + size, earlier);
  order_size_ = size;
  group_end_ = 0;
}

void RegionOps::take_indexed_group() noexcept {
  group_begin_ = group_end_;
  when_ = order_[group_begin_].when;
  while (group_end_ < order_size_ && order_[group_end_].when == when_) ++group_end_;
}

bool RegionOps::next_indexed_group() noexcept {
  if (by_search_ || group_end_ == order_size_) {
    if (all_indexed_ && !by_search_) return false;
    index_from(when_ + 1);
    if (order_size_ == 0) return by_search_ = false;
  }
  by_search_ = false;
  take_indexed_group();
  const auto may_go_on = [this] { return group_end_ == order_size_ && !all_indexed_; };
  if (may_go_on() && group_begin_ != 0) {
    index_from(when_);
    take_indexed_group();
  }
  by_search_ = may_go_on();
  return !failure_;
}

const unw_dyn_op_t* RegionOps::next_indexed_op() noexcept {
  while (by_search_) {
    const unw_dyn_op_t* const found = next_listed();
    if (!found || listed_when_ == when_) return found;
  }
  if (position_ == group_end_) return nullptr;
  index_ = order_[position_++].index;
  return op(index_);
}

}  // namespace jitunwind
