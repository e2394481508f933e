#include <algorithm>
#include <array>
#include <functional>
#include <new>
#include <queue>
#include <utility>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/list_state_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind {

/// version, generation, first: docs/registry.md "Finding the list".
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept {
  constexpr std::uint32_t k_newest_version = 1;  // nongnu's libunwind leaves 0
  std::array<std::byte, 16> bytes;
  const auto used = std::span(bytes).first(8u + arch.word_size);
  if (memory.read(head, used, window) != used.size()) return unreadable(window, head, "list of procedures");
  ByteReader reader(used, arch.big_endian, head);
  if (reader.u32() > k_newest_version) return Error{ErrorCode::unsupported_version, head, "list of procedures"};
  ListState state;
  state.generation = reader.u32();
  state.first = reader.unsigned_of(arch.word_size);
  return state;
}

/// Those that JITs make, one behind the other: each is a stretch, and so is what is between two.
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

/// A sweep over all bounds: of the procedures that are open at one the first of the list has what follows.
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

/// Code that is made from low to high addresses is from high to low in the list.
void ListIndex::make_stretches(std::span<const Procedure> procedures) {
  stretches_.clear();
  std::vector<Procedure> ascending(procedures.rbegin(), procedures.rend());
  const auto begin_of = [](const Procedure& procedure) { return procedure.code.begin; };
  if (!std::ranges::is_sorted(ascending, {}, begin_of)) std::ranges::sort(ascending, {}, begin_of);
  if (!add_disjoint(ascending, stretches_)) add_overlapping(procedures, stretches_);
}

bool ListIndex::make(Addr list, std::uint32_t generation, std::span<const Procedure> procedures) noexcept try {
  is_known_ = false;
  make_stretches(procedures);
  list_ = list;
  generation_ = generation;
  return is_known_ = true;
} catch (const std::bad_alloc&) {
  return false;
}

Addr ListIndex::find(Addr at) const noexcept {
  const auto behind = std::ranges::upper_bound(stretches_, at, {}, &Stretch::begin);
  return behind == stretches_.begin() ? 0 : std::prev(behind)->descriptor;
}

}  // namespace jitunwind
