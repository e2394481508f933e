#include "jitunwind/adapters/system_unwinder/frames/frame_section_p.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace jitunwind {
namespace {

constexpr std::size_t k_first_size = 1024;
constexpr std::uint32_t k_least_gap = 8;

/// An entry that looks like a CIE, which libgcc skips (LSB 5.0 core, 10.6.1: length, then an id of 0).
void put_filler(std::byte* to, std::uint32_t size) noexcept {
  const std::uint32_t head[2]{static_cast<std::uint32_t>(size - sizeof(std::uint32_t)), 0};
  std::memcpy(to, head, sizeof head);
}

template <class T>
void grow_to(std::vector<T>& all, std::size_t size) {
  if (size > all.capacity()) all.reserve(std::max(size, 2 * all.capacity()));
}

}  // namespace

SectionMemory::Object* SectionMemory::take(Clock::time_point now) {
  if (objects_.empty() || now - objects_.front().since < k_set_aside) return new Object{};
  Object* const object = objects_.front().what.release();
  objects_.pop_front();
  return object;
}

void SectionMemory::give_back(Object* object, Clock::time_point now) {
  objects_.push_back({now, std::unique_ptr<Object>(object)});
}

void SectionMemory::give_back(Bytes section, Clock::time_point now) {
  while (!sections_.empty() && now - sections_.front().since >= k_set_aside) sections_.pop_front();
  sections_.push_back({now, std::move(section)});
}

/// Records a change; if there is no room for it, everything counts as changed.
void FrameSection::Changes::note(Stretch stretch) noexcept {
  if (stretches.size() < stretches.capacity())
    stretches.push_back(stretch);
  else
    all = true;
}

/// Runs before the first change that follows a publication.
void FrameSection::catch_up() noexcept {
  if (missing_.all) std::memcpy(unpublished().data(), copies_[current_].data(), end_);
  for (const Stretch& stretch : missing_.stretches)
    std::memcpy(&unpublished()[stretch.offset], &copies_[current_][stretch.offset], stretch.size);
  missing_.clear();
}

bool FrameSection::fits(const Stretch& gap, std::uint32_t size) noexcept {
  return gap.size == size || gap.size >= size + k_least_gap;
}

/// Takes a gap that fits, or the beginning of a larger one; else the first bytes that were never used, if there are
/// enough.
FrameSection::Stretch FrameSection::take_stretch(std::uint32_t size) noexcept {
  const auto gap = std::find_if(gaps_.rbegin(), gaps_.rend(), [&](const Stretch& one) { return fits(one, size); });
  if (gap != gaps_.rend()) {
    const Stretch taken{gap->offset, size};
    gap->offset += size;
    gap->size -= size;
    if (gap->size != 0) {
      put_filler(&unpublished()[gap->offset], gap->size);
      changed_.note({gap->offset, k_least_gap});
    } else {
      *gap = gaps_.back();
      gaps_.pop_back();
    }
    return taken;
  }
  if (end_ + size + k_end_size > unpublished().size()) return {};
  end_ += size;
  return {end_ - size, size};
}

/// Gives every entry a new place, in new copies: the old copies may be in use as long as they have an entry.
void FrameSection::lay_out(std::size_t bytes) {
  catch_up();
  outgrown_.reserve(outgrown_.size() + copies_.size());
  const Bytes from = unpublished();
  Bytes first(bytes + k_end_size);
  Bytes second(bytes + k_end_size);
  for (Bytes& old : copies_)
    if (!old.empty()) outgrown_.push_back(std::move(old));
  copies_ = {std::move(first), std::move(second)};
  end_ = 0;
  gaps_.clear();
  changed_.clear();
  for (Stretch& entry : entries_) {
    if (entry.size == 0) continue;
    for (Bytes& copy : copies_) std::memcpy(&copy[end_], &from[entry.offset], entry.size);
    entry.offset = end_;
    end_ += entry.size;
  }
  changed_.all = true;  // the other copy lacks nothing, but it must be published
}

/// Does all work that can fail, before anything changes.
void FrameSection::make_room(std::size_t bytes) {
  grow_to(entries_, entries_.size() + 1);
  grow_to(free_places_, free_places_.size() + 1);
  grow_to(gaps_, gaps_.size() + 1);
  grow_to(changed_.stretches, changed_.stretches.size() + 2);
  const auto size = static_cast<std::uint32_t>(bytes);
  const bool has_gap = std::any_of(gaps_.begin(), gaps_.end(), [&](const Stretch& gap) { return fits(gap, size); });
  if (!has_gap && end_ + bytes + k_end_size > unpublished().size())
    lay_out(std::max(k_first_size, 3 * (live_ + bytes) / 2));
}

FrameSection::Place FrameSection::add(std::span<const std::byte> entries) {
  make_room(entries.size());
  catch_up();
  Place place = static_cast<Place>(entries_.size());
  if (free_places_.empty()) {
    entries_.push_back({});
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  entries_[place] = take_stretch(static_cast<std::uint32_t>(entries.size()));
  std::memcpy(&unpublished()[entries_[place].offset], entries.data(), entries.size());
  changed_.note(entries_[place]);
  live_ += entries_[place].size;
  return place;
}

void FrameSection::remove(Place place) noexcept {
  catch_up();
  const Stretch gone = std::exchange(entries_[place], {});
  put_filler(&unpublished()[gone.offset], gone.size);
  changed_.note({gone.offset, k_least_gap});
  live_ -= gone.size;
  // A gap that cannot be recorded for lack of room is not used again before the next lay_out().
  if (gaps_.size() < gaps_.capacity()) gaps_.push_back(gone);
  if (free_places_.size() < free_places_.capacity()) free_places_.push_back(place);
}

/// Publishes the new copy first, so that remaining entries are always known.
void FrameSection::publish(SectionMemory& memory) {
  if (changed_.empty()) return;
  const std::byte* next = nullptr;
  SectionMemory::Object* object = nullptr;
  if (live_ != 0) {
    object = memory.take();
    current_ = 1 - current_;
    next = copies_[current_].data();
    __register_frame_info(next, object->data());
    std::swap(missing_, changed_);
    changed_.clear();
  }
  const std::byte* const old = std::exchange(published_, next);
  SectionMemory::Object* const old_object = std::exchange(object_, object);
  if (old != nullptr) {
    (void)__deregister_frame_info(old);
    memory.give_back(old_object);
  }
  for (Bytes& section : outgrown_) memory.give_back(std::move(section));
  outgrown_.clear();
}

std::byte* FramePool::take(std::size_t size) {
  if (size > k_largest) return static_cast<std::byte*>(::operator new(size));
  const std::size_t units = (size + k_unit - 1) / k_unit;
  if (Free* const block = free_[units]) {
    free_[units] = block->next;
    return reinterpret_cast<std::byte*>(block);
  }
  if (left_ < units * k_unit) {
    chunks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[k_chunk]));
    next_ = chunks_.back().get();
    left_ = k_chunk;
  }
  left_ -= units * k_unit;
  next_ += units * k_unit;
  return next_ - units * k_unit;
}

void FramePool::give_back(std::byte* block, std::size_t size) noexcept {
  if (size > k_largest) return ::operator delete(block);
  Free*& first = free_[(size + k_unit - 1) / k_unit];
  first = new (block) Free{first};
}

}  // namespace jitunwind
