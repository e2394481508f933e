// New files for segments that have changed: when, and by whom.
#include <unistd.h>

#include <algorithm>
#include <new>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

using Nanoseconds = std::int64_t;

constexpr Nanoseconds k_between_renewals = 100'000'000, k_between_stamps = 10'000'000;
/// Renewals of segments that grow take at most this part of the time.
constexpr Nanoseconds k_share = 50;

}  // namespace

/// Nobody writes to its code, and none of it is sealed.
bool CodeSegments::State::may_be_renewed(const Segment& segment) const noexcept {
  return segment.is_published() && !options.changes_code && segment.open == 0 && !segment.memory().is_sealed();
}

/// Nothing is appended, and no room of it is handed out.
bool CodeSegments::State::is_full(const Segment& segment) const noexcept {
  return &segment != current && segment.listed == 0 && may_be_renewed(segment);
}

Status CodeSegments::State::renew(Segment& segment, bool seals) noexcept {
  remove_outdated();
  const Nanoseconds begin = nanoseconds_of(CLOCK_MONOTONIC);
  try {
    Result<std::string> renewed = segment.renew(seals);
    if (renewed) outdated = std::move(*renewed);
    segment.renewed_at = segment.stamped_at = nanoseconds_of(CLOCK_MONOTONIC);
    next_renewal = segment.renewed_at + k_share * (segment.renewed_at - begin);
    if (renewed) return Done{};
    refuse(renewed.error());
    return renewed.error();
  } catch (const std::bad_alloc&) {
    const Error why{ErrorCode::out_of_memory, 0, "no memory for the names of files"};
    return refuse(why), why;
  }
}

/// Somebody may have read its name in a list of mappings, so it stays until another one comes.
void CodeSegments::State::remove_outdated() noexcept {
  if (!outdated.empty()) ::unlink(outdated.c_str());
  outdated.clear();
}

/// After each change. A segment that has just been opened has no times.
void CodeSegments::State::renew_if_it_is_time(Segment& segment) noexcept {
  if (is_full(segment)) return;  // it is sealed soon
  // Every commit reads this clock. It is exact to 4 ms, in a third of the time.
  const Nanoseconds now = nanoseconds_of(CLOCK_MONOTONIC_COARSE);
  if (segment.renewed_at == 0) segment.renewed_at = segment.stamped_at = now;
  if (may_be_renewed(segment) && now >= std::max(segment.renewed_at + k_between_renewals, next_renewal)) {
    (void)renew(segment, false);
  } else if (segment.is_published() && now >= segment.stamped_at + k_between_stamps) {
    segment.stamped_at = now;
    segment.memory().stamp();
  }
}

void CodeSegments::State::seal_full() noexcept {
  for (;;) {
    const SegmentsLock lock;
    const auto full = std::ranges::find_if(segments, [&](const auto& entry) { return is_full(*entry.second); });
    if (full == segments.end() || !renew(*full->second, true)) return;
  }
}

Status CodeSegments::State::seal() noexcept {
  Status sealed = Done{};
  const SegmentsLock lock;
  for (auto& [end, segment] : segments)
    if (may_be_renewed(*segment))
      if (const Status one = renew(*segment, true); !one) sealed = one;
  return sealed;
}

/// A sealed segment never changes; what is written next is in a new file. False: it stays sealed.
bool CodeSegments::State::open_again(Segment& segment) noexcept {
  return !segment.memory().is_sealed() || static_cast<bool>(renew(segment, false));
}

/// The thread that opens segments closes those that this one must not close.
void CodeSegments::State::close_segment(Opened segment) noexcept {
  if (!segment || !lists_libraries()) return;
  const SegmentsLock lock;
  try {
    leaving.push_back(std::move(segment));
  } catch (const std::bad_alloc&) {
    (void)segment.release();  // its memory is lost
  }
}

}  // namespace jitunwind
