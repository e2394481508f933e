#include "adapters/system_unwinder/frame_section_p.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "adapters/system_unwinder/register_frame_p.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_end_size = 4;  // a length of 0
constexpr std::size_t k_first_size = 2048;

/// Writes only what is not so already.
void put(std::byte* to, std::span<const std::byte> bytes) noexcept {
  if (std::memcmp(to, bytes.data(), bytes.size()) != 0) std::memcpy(to, bytes.data(), bytes.size());
}

/// An entry that looks like a CIE, which libgcc skips (LSB 5.0 core, 10.6.1: length, then an id of 0).
void put_filler(std::byte* to, std::size_t size) noexcept {
  const std::uint32_t head[2]{static_cast<std::uint32_t>(size - sizeof(std::uint32_t)), 0};
  put(to, std::as_bytes(std::span(head)));
}

}  // namespace

SectionObjects::Object* SectionObjects::take(Clock::time_point now) {
  if (resting_.empty() || now - resting_.front().since < k_rest) return new Object{};
  Object* const object = resting_.front().object.release();
  resting_.pop_front();
  return object;
}

void SectionObjects::give_back(Object* object, Clock::time_point now) {
  resting_.push_back({now, std::unique_ptr<Object>(object)});
}

bool FrameSection::has_entries() const noexcept {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.entries.empty(); });
}

/// Room for so many bytes more, at the end. Everything gets a new place, in new copies: the old ones may be in use as
/// long as anything is.
void FrameSection::grow(std::size_t bytes) {
  const std::size_t live = std::transform_reduce(slots_.begin(), slots_.end(), std::size_t{0}, std::plus<>(),
                                                 [](const Slot& slot) { return slot.entries.size(); });
  const std::size_t before = copies_.empty() ? 0 : copies_.back()[0].size() - k_end_size;
  const std::size_t size = std::max({2 * before, 2 * (live + bytes), k_first_size});
  std::list<Slot> rest{{live, size - live, {}}};
  const Bytes zeros(size + k_end_size);
  copies_.push_back({zeros, zeros});
  std::erase_if(slots_, [](const Slot& slot) { return slot.entries.empty(); });
  std::size_t offset = 0;
  for (Slot& slot : slots_) {
    slot.offset = offset;
    slot.size = slot.entries.size();
    offset += slot.size;
  }
  slots_.splice(slots_.end(), rest);
}

FrameSection::Place FrameSection::add(Bytes entries) {
  const std::size_t size = entries.size();
  const auto find_room = [&] {
    return std::find_if(slots_.begin(), slots_.end(),
                        [&](const Slot& slot) { return slot.entries.empty() && slot.size >= size; });
  };
  Place place = find_room();
  if (place == slots_.end()) {
    grow(size);
    place = find_room();
  }
  if (place->size > size) {
    slots_.insert(std::next(place), {place->offset + size, place->size - size, {}});
    place->size = size;
  }
  place->entries = std::move(entries);
  return place;
}

void FrameSection::join_with_next(Place place) noexcept {
  const Place next = std::next(place);
  if (next == slots_.end() || !next->entries.empty()) return;
  place->size += next->size;
  slots_.erase(next);
}

void FrameSection::remove(Place place) noexcept {
  place->entries = {};
  join_with_next(place);
  if (place != slots_.begin() && std::prev(place)->entries.empty()) join_with_next(std::prev(place));
}

/// The new one first, so that what stays is never unknown.
void FrameSection::publish(SectionObjects& objects) {
  const std::byte* next = nullptr;
  SectionObjects::Object* object = nullptr;
  if (has_entries()) {
    object = objects.take();
    current_ = 1 - current_;
    Bytes& copy = copies_.back()[current_];
    for (const Slot& slot : slots_) {
      if (slot.entries.empty())
        put_filler(&copy[slot.offset], slot.size);
      else
        put(&copy[slot.offset], slot.entries);
    }
    next = copy.data();
    __register_frame_info(next, object->data());
  }
  const std::byte* const old = std::exchange(published_, next);
  SectionObjects::Object* const old_object = std::exchange(object_, object);
  if (old == nullptr) return;
  (void)__deregister_frame_info(old);
  objects.give_back(old_object);
}

}  // namespace jitunwind
