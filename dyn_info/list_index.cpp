#include "jitunwind/dyn_info/list_index_internal.h"

#include <algorithm>
#include <functional>
#include <new>
#include <queue>
#include <utility>

namespace jitunwind {

/// Handles procedures that do not overlap, as JITs make them: each is a stretch, and so is each gap.
bool ListIndex::add_disjoint(std::span<const Procedure> ascending, std::vector<Stretch>& stretches) {
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i)
    if (ascending[i].code.end > ascending[i + 1].code.begin) return false;
  stretches.reserve(2 * ascending.size() + 1);
  for (const Procedure& procedure : ascending) {
    if (!stretches.empty() && stretches.back().begin == procedure.code.begin) stretches.pop_back();
    stretches.push_back({procedure.code.begin, procedure.descriptor});
    stretches.push_back({procedure.code.end, 0});
  }
  return true;
}

/// Sweeps over all bounds: the code after a bound belongs to the procedure that is first in the list among those that
/// cover it.
void ListIndex::add_overlapping(std::span<const Procedure> procedures, std::vector<Stretch>& stretches) {
  std::vector<std::size_t> by_begin(procedures.size());
  std::vector<Addr> bounds;
  bounds.reserve(2 * procedures.size());
  for (std::size_t i = 0; i < procedures.size(); ++i) {
    by_begin[i] = i;
    bounds.push_back(procedures[i].code.begin);
    bounds.push_back(procedures[i].code.end);
  }
  std::ranges::sort(by_begin, {}, [&](std::size_t i) { return procedures[i].code.begin; });
  std::ranges::sort(bounds);
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());

  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> open;
  std::size_t next = 0;
  for (const Addr bound : bounds) {
    for (; next < by_begin.size() && procedures[by_begin[next]].code.begin == bound; ++next) open.push(by_begin[next]);
    while (!open.empty() && procedures[open.top()].code.end <= bound) open.pop();
    const Addr descriptor = open.empty() ? 0 : procedures[open.top()].descriptor;
    if (stretches.empty() || stretches.back().descriptor != descriptor) stretches.push_back({bound, descriptor});
  }
}

/// Code that is made at ascending addresses is at descending addresses in the list.
void ListIndex::make_stretches(std::span<const Procedure> procedures) {
  stretches_.clear();
  changed_.clear();
  std::vector<Procedure> ascending(procedures.rbegin(), procedures.rend());
  const auto begin_of = [](const Procedure& procedure) { return procedure.code.begin; };
  if (!std::ranges::is_sorted(ascending, {}, begin_of)) std::ranges::sort(ascending, {}, begin_of);
  is_disjoint_ = add_disjoint(ascending, stretches_);
  if (!is_disjoint_) add_overlapping(procedures, stretches_);
}

bool ListIndex::make(Addr list, std::uint32_t generation, std::span<const Procedure> procedures,
                     std::optional<std::uint64_t> changes) noexcept try {
  is_known_ = false;
  make_stretches(procedures);
  list_ = list;
  generation_ = generation;
  changes_ = changes;
  newest_ = procedures.empty() ? Addr{0} : procedures.front().descriptor;
  return is_known_ = true;
} catch (const std::bad_alloc&) {
  return false;
}

/// The stretch that contains `at`, and its end; code before the first stretch belongs to no procedure.
ListIndex::Stretch ListIndex::stretch_at(const std::vector<Stretch>& stretches, Addr at, Addr& end) noexcept {
  const auto behind = std::ranges::upper_bound(stretches, at, {}, &Stretch::begin);
  end = behind == stretches.end() ? ~Addr{0} : behind->begin;
  return behind == stretches.begin() ? Stretch{} : *std::prev(behind);
}

/// The stretch that contains `at` by both vectors, as if they were one.
ListIndex::Stretch ListIndex::known_at(Addr at, Addr& end) const noexcept {
  if (changed_.empty()) return stretch_at(stretches_, at, end);
  Addr end_before = 0;
  const Stretch changed = stretch_at(changed_, at, end);
  if (changed.descriptor != k_as_before) return changed;
  const Stretch before = stretch_at(stretches_, at, end_before);
  end = std::min(end, end_before);
  return {std::max(changed.begin, before.begin), before.descriptor};
}

Addr ListIndex::find(Addr at) const noexcept {
  Addr end = 0;
  return known_at(at, end).descriptor;
}

/// Addresses after the range keep their descriptor.
void ListIndex::assign(std::vector<Stretch>& stretches, AddrRange range, Addr descriptor) {
  Addr end = 0;
  const Stretch after = stretch_at(stretches, range.end, end);
  const auto first = std::ranges::lower_bound(stretches, range.begin, {}, &Stretch::begin);
  const auto behind = std::ranges::upper_bound(first, stretches.end(), range.end, {}, &Stretch::begin);
  const Stretch made[] = {{range.begin, descriptor}, {range.end, after.descriptor}};
  const auto place = stretches.erase(first, behind);
  stretches.insert(place, std::begin(made), std::end(made));
}

/// A registered procedure must be in a gap, and a cancelled one must be there from its first to its last byte.
bool ListIndex::change(const Change& change) {
  const auto& [code, descriptor] = change.procedure;
  const Addr before = change.is_registered ? 0 : descriptor;
  if (code.empty()) return false;
  for (Addr at = code.begin, end = 0; at < code.end; at = end)
    if (known_at(at, end).descriptor != before) return false;
  if (changed_.empty()) changed_.push_back({0, k_as_before});
  assign(changed_, code, change.is_registered ? descriptor : 0);
  if (change.is_registered)
    newest_ = descriptor;
  else if (newest_ == descriptor)
    newest_.reset();
  return true;
}

/// Linear in the sizes of both vectors.
void ListIndex::merge() {
  std::vector<Stretch> merged;
  merged.reserve(stretches_.size() + changed_.size());
  const auto add = [&](const Stretch& stretch) {
    if (merged.empty() ? stretch.descriptor != 0 : stretch.descriptor != merged.back().descriptor)
      merged.push_back(stretch);
  };
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    const Stretch& changed = changed_[i];
    if (changed.descriptor != k_as_before) {
      add(changed);
      continue;
    }
    Addr end = 0;
    add({changed.begin, stretch_at(stretches_, changed.begin, end).descriptor});
    const auto is_behind = [&](const Stretch& before) {
      return i + 1 < changed_.size() && before.begin >= changed_[i + 1].begin;
    };
    for (auto before = std::ranges::upper_bound(stretches_, changed.begin, {}, &Stretch::begin);
         before != stretches_.end() && !is_behind(*before); ++before)
      add(*before);
  }
  stretches_ = std::move(merged);
  changed_.clear();
}

bool ListIndex::change(std::uint32_t generation, std::span<const Change> changes) noexcept try {
  constexpr std::size_t k_most_changed = 1024;  // two for each change
  if (!is_known_ || !is_disjoint_ || !changes_) return is_known_ = false;
  is_known_ = false;
  for (const Change& one : changes) {
    if (!change(one)) return false;
    if (changed_.size() > k_most_changed) merge();
  }
  *changes_ += changes.size();
  generation_ = generation;
  return is_known_ = true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace jitunwind
