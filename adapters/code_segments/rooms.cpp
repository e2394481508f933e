// Rooms of functions: taken, emptied, and taken again; segments, opened and closed.
#include <algorithm>
#include <bit>
#include <new>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {
namespace {

/// Rooms have one of few sizes, so that a room that is empty again serves others: multiples of 16 up to 1 KiB, then
/// eighths of the power of two below. Numbers of parts are powers of two.
std::size_t room_size(std::size_t size) noexcept {
  std::size_t unit = 16;
  while (size > 64 * unit) unit *= 2;
  return (size + unit - 1) / unit * unit;
}

}  // namespace

CodeSegments::State::Place CodeSegments::State::find(Addr start, Segment::Function::State state) const noexcept {
  const auto around = segments.upper_bound(start);
  if (around == segments.end()) return {};
  Segment& segment = *around->second;
  const auto index = start < segment.text().begin ? std::nullopt : segment.find(start);
  if (!index || segment[*index].state != state) return {};
  return {&segment, *index};
}

CodeSegments::State::Place CodeSegments::State::find_around(AddrRange code) const noexcept {
  const auto around = segments.upper_bound(code.begin);
  if (around == segments.end() || code.begin < around->second->text().begin) return {};
  Segment& segment = *around->second;
  const auto index = segment.find_around(code.begin);
  if (!index || segment[*index].state != Segment::Function::State::allocated) return {};
  const Addr end = segment.start(segment[*index]) + segment[*index].size;
  return code.empty() || code.end > end ? Place{} : Place{&segment, *index};
}

/// A debugger may have read the names of functions that have gone. It reads a library once.
CodeSegments::State::Place CodeSegments::State::take_empty(const RoomSize& size) noexcept {
  const auto rooms = empty.find(size);
  if (rooms == empty.end() || rooms->second.empty() || tracer.kind() != TracerKind::none) return {};
  while (!rooms->second.empty()) {
    const Place place = rooms->second.front();
    if (!open_again(*place.segment)) {
      unlist(*place.segment);
      continue;
    }
    rooms->second.pop_front();
    --place.segment->listed;
    if (place.segment->has_room_in_tables(place.function())) return place;
  }
  return {};
}

CodeSegments::State::Place CodeSegments::State::take(const RoomSize& size, Opened& unused) {
  if (const Place place = take_empty(size)) return place;
  if (!fits_any_segment(size)) return {};
  if (current != nullptr && open_again(*current))
    if (const auto index = current->append(size)) return {current, *index};
  if (!spare || !spare->is_writable()) return {};
  use(std::move(spare), unused);
  const auto index = current->append(size);
  return index ? Place{current, *index} : Place{};
}

/// `unused`: the segment before, if nothing of it is used.
void CodeSegments::State::use(Opened opened, Opened& unused) {
  Segment* const next = opened.get();
  segments[next->text().end] = std::move(opened);
  Segment* const before = std::exchange(current, next);
  unused = take_out_unused(before);
  if (before == nullptr || unused) return;
  if (!hands_out_all(*before)) unlist(*before);
  is_some_full = is_some_full || is_full(*before);
}

CodeRoom CodeSegments::State::room_of(Place place) noexcept {
  place.function().state = Segment::Function::State::allocated;
  place.function().is_open = true;
  ++place.segment->live;
  ++place.segment->open;
  return {place.segment->start(place.function()), place.segment->writable(place.function())};
}

Result<CodeRoom> CodeSegments::State::allocate(std::size_t bytes, std::size_t more_functions, std::size_t alignment) {
  Opened unused;  // closed without the lock
  const Result<CodeRoom> room =
      allocate({room_size(bytes), more_functions == 0 ? 0 : std::bit_ceil(more_functions), alignment}, unused);
  close_segment(std::move(unused));
  return room;
}

Result<CodeRoom> CodeSegments::State::allocate(const RoomSize& size, Opened& unused) {
  bool is_alone = !fits_any_segment(size);
  Opened opened;
  for (bool is_disk_full = false;; is_disk_full = true) {
    {
      const SegmentsLock lock;
      if (opened && is_alone) {
        Segment& segment = *opened;
        if (const auto index = segment.append(size)) {
          segments[segment.text().end] = std::move(opened);
          return room_of({&segment, *index});
        }
      } else if (opened) {
        use(std::move(opened), unused);
      }
      if (const Place place = take(size, unused)) {
        work_ahead();
        return room_of(place);
      }
    }
    Status may_have_file = is_disk_full ? Status(not_published(k_disk_full)) : may_publish();
    if (may_have_file && lists_libraries()) {
      may_have_file = not_published("a callback of dl_iterate_phdr() must not open a library");
      is_alone = true;
    }
    close_abandoned();
    // A file that has no pages for this room was refused.
    opened = open(is_alone ? CodeSegmentsOptions{size.bytes, 1 + size.parts} : options, may_have_file);
    if (!opened) return Error{ErrorCode::out_of_memory, 0, "no executable memory"};
  }
}

CodeSegments::State::Opened CodeSegments::State::open_published(SegmentLayout& layout, const std::string& place) {
  Result<SegmentMemory> memory = SegmentMemory::publish(place, places.files, layout, local_space().arch);
  const SegmentsLock lock;
  if (!memory) return refuse(memory.error()), nullptr;
  const std::string& path = memory->path();
  folder = path.substr(0, path.rfind('/'));
  return std::make_unique<Segment>(std::move(*memory), layout);
}

CodeSegments::State::Opened CodeSegments::State::open(const CodeSegmentsOptions& sizes, const Status& may_have_file) {
  const ErrnoKeeper keep_errno;
  SegmentLayout layout(local_space().arch, sizes.text_bytes, sizes.functions);
  if (may_have_file) {
    for (const std::string& place : places.paths)
      if (Opened opened = open_published(layout, place)) return opened;
  } else {
    const SegmentsLock lock;
    refuse(may_have_file.error());
  }
  Result<SegmentMemory> memory = SegmentMemory::unnamed(layout);
  return memory ? std::make_unique<Segment>(std::move(*memory), layout) : nullptr;
}

void CodeSegments::State::work(void* self) noexcept {
  State& state = *static_cast<State*>(self);
  for (;;) {
    state.seal_full();
    Opened opened;
    std::vector<Opened> leaving;  // closed without the lock
    try {
      bool wants_spare = false;
      {
        const SegmentsLock lock;
        wants_spare = state.wants_spare();
        leaving.swap(state.leaving);
      }
      if (wants_spare) opened = state.open(state.options, may_publish());
      if (opened) opened->memory().back_all_ahead();  // the pages that committing threads will not wait for
    } catch (const std::bad_alloc&) {
    }
    const SegmentsLock lock;
    if (opened) state.spare.swap(opened);  // that of a parent is closed without the lock
    // A segment that became full behind seal_full() starts no other thread.
    state.is_at_work = std::exchange(state.is_some_full, false) || !state.leaving.empty();
    if (!state.is_at_work) return;
  }
}

bool CodeSegments::State::wants_spare() const noexcept {
  return !(spare && spare->is_writable()) && current != nullptr && current->is_half_full();
}

/// If no thread can be started, none is tried again.
void CodeSegments::State::work_ahead() noexcept {
  if (is_at_work || !(is_some_full || wants_spare() || !leaving.empty()) || lists_libraries()) return;
  worker.join();  // the former thread had nothing left to do
  is_at_work = true;
  is_some_full = false;
  (void)worker.start(work, this);
}

/// Null: it is used.
CodeSegments::State::Opened CodeSegments::State::take_out_unused(Segment* segment) noexcept {
  if (segment == nullptr || segment == current || segment->live != 0) return nullptr;
  unlist(*segment);
  const auto it = segments.find(segment->text().end);
  Opened unused = std::move(it->second);
  segments.erase(it);
  return unused;
}

/// Rooms of a full segment, which has a file that never changes, wait until a quarter of its rooms is empty. The
/// segment is then opened again for all of them.
bool CodeSegments::State::hands_out_all(const Segment& segment) const noexcept {
  const bool is_ever_full = segment.is_published() && !options.changes_code && &segment != current;
  return !is_ever_full || 4 * segment.live <= 3 * segment.rooms();
}

void CodeSegments::State::unlist(Segment& segment) noexcept {
  if (std::exchange(segment.listed, 0) == 0) return;
  for (auto& [size, rooms] : empty) std::erase_if(rooms, [&](Place room) { return room.segment == &segment; });
}

/// The room is lost until the segment is closed, if there is no memory.
void CodeSegments::State::list_empty(Place place) noexcept {
  try {
    const Segment::Function& room = place.function();
    empty[{room.size, room.parts, room.alignment}].push_back(place);
    ++place.segment->listed;
  } catch (const std::bad_alloc&) {
  }
}

/// Returns a segment that is to be closed.
CodeSegments::State::Opened CodeSegments::State::make_empty(Place place) noexcept {
  Segment& segment = *place.segment;
  place.function().state = Segment::Function::State::empty;
  --segment.live;
  if (Opened unused = take_out_unused(&segment)) return unused;
  if (!segment.is_writable()) return nullptr;
  if (segment.listed != 0 || &segment == current) {
    list_empty(place);
  } else if (hands_out_all(segment)) {
    for (Segment::Index i = 0; i < segment.count(); ++i)
      if (segment[i].state == Segment::Function::State::empty) list_empty({&segment, i});
  }
  return nullptr;
}

Status CodeSegments::State::release(Addr start) noexcept {
  Opened unused;  // closed without the lock
  const Status released = release(start, unused);
  close_segment(std::move(unused));
  return released;
}

Status CodeSegments::State::release(Addr start, Opened& unused) noexcept {
  using State = Segment::Function::State;
  Place place;
  Registration leaving;
  {
    const SegmentsLock lock;
    place = find(start, State::committed);
    if (place) {
      leaving = Registration::adopt(std::exchange(place.function().registered, nullptr));
    } else {
      place = find(start, State::allocated);
      if (!place) return k_unknown;
    }
    place.function().state = State::busy;
  }
  const bool was_committed = static_cast<bool>(leaving);
  const Status cancelled = leaving.cancel();
  const SegmentsLock lock;
  if (!cancelled && leaving) {
    place.function().registered = leaving.release();
    place.function().state = State::committed;
    return cancelled;
  }
  if (was_committed) --committed;
  if (!std::exchange(place.function().is_open, false)) {
    if (place.segment->is_published()) place.segment->withdraw(place.index);
    if (!place.segment->memory().is_sealed()) renew_if_it_is_time(*place.segment);
  } else {
    --place.segment->open;
  }
  unused = make_empty(place);
  return Done{};
}

}  // namespace jitunwind
