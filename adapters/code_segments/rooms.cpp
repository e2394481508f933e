// Rooms of functions: taken, emptied, and taken again; segments, opened and closed.
#include <sys/auxv.h>

#include <algorithm>
#include <new>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {
namespace {

/// Rooms have one of few sizes, so that a room that is empty again serves others: multiples of 16 up to 1 KiB, then
/// eighths of the power of two below.
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

CodeSegments::State::Place CodeSegments::State::take_empty(std::size_t size) noexcept {
  const auto rooms = empty.find(size);
  if (rooms == empty.end()) return {};
  while (!rooms->second.empty()) {
    const Place place = rooms->second.front();
    rooms->second.pop_front();
    if (place.segment->has_room_in_tables(place.function())) return place;
  }
  return {};
}

CodeSegments::State::Place CodeSegments::State::take(std::size_t size, Opened& unused) {
  if (const Place place = take_empty(size)) return place;
  if (size > options.text_bytes) return {};
  if (current != nullptr)
    if (const auto index = current->append(size)) return {current, *index};
  if (!spare || !spare->is_writable()) return {};
  use(std::move(spare), unused);
  return {current, *current->append(size)};
}

/// `unused`: the segment before, if nothing of it is used.
void CodeSegments::State::use(Opened opened, Opened& unused) {
  Segment* const next = opened.get();
  segments[next->text().end] = std::move(opened);
  unused = take_out_unused(std::exchange(current, next));
}

CodeRoom CodeSegments::State::room_of(Place place) noexcept {
  place.function().state = Segment::Function::State::allocated;
  ++place.segment->live;
  return {place.segment->start(place.function()), place.segment->writable(place.function())};
}

Result<CodeRoom> CodeSegments::State::allocate(std::size_t bytes) {
  const std::size_t size = room_size(bytes);
  Opened opened, unused;  // closed without the lock
  for (;;) {
    {
      const SegmentsLock lock;
      if (opened && size > options.text_bytes) {
        Segment& segment = *opened;
        segments[segment.text().end] = std::move(opened);
        return room_of({&segment, *segment.append(size)});
      }
      if (opened) use(std::move(opened), unused);
      if (const Place place = take(size, unused)) {
        open_ahead();
        return room_of(place);
      }
    }
    opened = open(size > options.text_bytes ? CodeSegmentsOptions{size, 1} : options);
    if (!opened) return Error{ErrorCode::out_of_memory, 0, "no executable memory"};
  }
}

CodeSegments::State::Opened CodeSegments::State::open_published(SegmentLayout& layout, const std::string& place) {
  Result<SegmentMemory> memory = SegmentMemory::publish(place, files, layout, local_space().arch);
  const SegmentsLock lock;
  if (!memory) return refuse(memory.error()), nullptr;
  const std::string& path = memory->path();
  folder = path.substr(0, path.rfind('/'));
  return std::make_unique<Segment>(std::move(*memory), layout);
}

CodeSegments::State::Opened CodeSegments::State::open(const CodeSegmentsOptions& sizes) {
  const ErrnoKeeper keep_errno;
  SegmentLayout layout(local_space().arch, sizes.text_bytes, sizes.functions);
  if (::getauxval(AT_SECURE) == 0) {
    for (const std::string& place : places)
      if (Opened opened = open_published(layout, place)) return opened;
  } else {
    const SegmentsLock lock;
    refuse({ErrorCode::io, 0, "the program changed its identity when it was executed"});
  }
  Result<SegmentMemory> memory = SegmentMemory::unnamed(layout);
  return memory ? std::make_unique<Segment>(std::move(*memory), layout) : nullptr;
}

void CodeSegments::State::open_spare(void* self) noexcept {
  State& state = *static_cast<State*>(self);
  Opened opened;
  try {
    opened = state.open(state.options);
  } catch (const std::bad_alloc&) {
  }
  const SegmentsLock lock;
  state.spare.swap(opened);  // that of a parent is closed without the lock
  state.spare_comes = false;
}

/// If no thread can be started, none is tried again.
void CodeSegments::State::open_ahead() noexcept {
  if ((spare && spare->is_writable()) || spare_comes || current == nullptr || !current->is_half_full()) return;
  opener.join();  // the former thread had nothing left to do
  spare_comes = true;
  (void)opener.start(open_spare, this);
}

/// Null: it is used.
CodeSegments::State::Opened CodeSegments::State::take_out_unused(Segment* segment) noexcept {
  if (segment == nullptr || segment == current || segment->live != 0) return nullptr;
  for (auto& [size, rooms] : empty) std::erase_if(rooms, [&](Place room) { return room.segment == segment; });
  const auto it = segments.find(segment->text().end);
  Opened unused = std::move(it->second);
  segments.erase(it);
  return unused;
}

/// Returns a segment that is to be closed.
CodeSegments::State::Opened CodeSegments::State::make_empty(Place place) noexcept {
  Segment& segment = *place.segment;
  place.function().state = Segment::Function::State::empty;
  --segment.live;
  if (Opened unused = take_out_unused(&segment)) return unused;
  try {
    if (segment.is_writable()) empty[place.function().size].push_back(place);
  } catch (const std::bad_alloc&) {
    // The room is lost until the segment is closed.
  }
  return nullptr;
}

Status CodeSegments::State::release(Addr start) noexcept {
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
  Opened closed;  // without the lock
  const SegmentsLock lock;
  if (!cancelled && leaving) {
    place.function().registered = leaving.release();
    place.function().state = State::committed;
    return cancelled;
  }
  if (was_committed) --committed;
  if (was_committed && place.segment->is_published()) place.segment->withdraw(place.index);
  closed = make_empty(place);
  return Done{};
}

}  // namespace jitunwind
