#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace jitunwind {
namespace {

/// An end of 0 marks an entry that is being written. A reader that gets a start newer than the end sees the end change.
struct Place {
  std::atomic<Addr> begin{0};
  std::atomic<Addr> end{0};
};
[[gnu::section(".bss.large")]] constinit std::array<Place, k_taken_back_known> places{};
constinit std::atomic<std::size_t> kept_so_far{0};

std::optional<Addr> begin_at(const Place& place, Addr at) noexcept {
  const Addr end = place.end.load(std::memory_order_acquire);
  const Addr begin = place.begin.load(std::memory_order_acquire);
  const bool is_whole = place.end.load(std::memory_order_relaxed) == end;
  return is_whole && at >= begin && at < end ? std::optional(begin) : std::nullopt;
}

}  // namespace

void keep_taken_back(const AddrRange& code) noexcept {
  Place& place = places[kept_so_far.fetch_add(1, std::memory_order_acq_rel) % places.size()];
  place.end.store(0, std::memory_order_relaxed);
  place.begin.store(code.begin, std::memory_order_release);
  place.end.store(code.end, std::memory_order_release);
}

std::optional<Addr> begin_of_taken_back(Addr at) noexcept {
  const std::size_t newest = kept_so_far.load(std::memory_order_acquire);
  for (std::size_t i = 1; i <= std::min(newest, places.size()); ++i)
    if (const auto begin = begin_at(places[(newest - i) % places.size()], at)) return begin;
  return std::nullopt;
}

}  // namespace jitunwind
