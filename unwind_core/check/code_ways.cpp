#include "jitunwind/unwind_core/check/code_ways_p.h"

#include <algorithm>

namespace jitunwind {

bool CheckedParts::Ways::waits(AddrRange part, bool begins_as_entry) {
  if (rounds_ != 0) return false;
  parts_.push_back({part, begins_as_entry});
  if (!begins_as_entry) waiting_.insert(part.begin);
  return !begins_as_entry;
}

/// Ways with one frame are one.
void CheckedParts::Ways::add(Way way, Addr start, const check_code::Machine& machine) {
  constexpr std::size_t k_most = std::size_t{1} << 16, k_most_of_target = 16;
  way.values.count_from(static_cast<std::uint32_t>(start));
  const auto [first, last] = framed_.equal_range(way.target);
  std::size_t count = 0;
  for (auto at = first; at != last; ++at, ++count) {
    Way& there = at->second.way;
    if (there.is_pad != way.is_pad || !there.values.same_frame_as(way.values, machine)) continue;
    at->second.is_new |= there.values.merge(way.values);
    return;
  }
  if (count < k_most_of_target && framed_.size() < k_most) framed_.emplace(way.target, Framed{way, true});
}

const CheckedParts::Ways::Part* CheckedParts::Ways::part_at(Addr target) const noexcept {
  const auto behind = std::ranges::upper_bound(parts_, target, {}, [](const Part& part) { return part.range.begin; });
  return behind != parts_.begin() && behind[-1].range.contains(target) ? &behind[-1] : nullptr;
}

/// Ways with a frame come first: parts that they lead to make calls, and are few. Linkage tables are called from
/// everywhere, and are checked in the end.
bool CheckedParts::Ways::begin_round() {
  constexpr unsigned k_most_rounds = 8;
  due_.clear();
  if (rounds_++ == 0) std::ranges::sort(parts_, {}, [](const Part& part) { return part.range.begin; });
  if (rounds_ > k_most_rounds) return false;
  const auto add_due = [this](Addr target) {
    if (const Part* const part = part_at(target)) due_.insert(part->range.begin);
  };
  for (const auto& [target, framed] : framed_)
    if (framed.is_new && rounds_ != k_most_rounds) add_due(target);
  if (!due_.empty()) return true;
  for (const Addr target : calls_) {
    const Part* const part = part_at(target);
    if (part && !(part->begins_as_entry && part->range.begin == target)) called_.try_emplace(target, true);
  }
  calls_.clear();
  for (const auto& [target, is_new] : called_)
    if (is_new) add_due(target);
  due_.insert(waiting_.begin(), waiting_.end());
  return !due_.empty();
}

}  // namespace jitunwind
