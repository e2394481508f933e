#include "jitunwind/adapters/listen/frames/told_calls_p.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {

unsigned ToldMemory::class_of(std::size_t count) noexcept {
  const std::size_t bytes = sizeof(ToldBlock) + count * sizeof(unw_dyn_info_t);
  const auto bits = static_cast<unsigned>(std::bit_width(bytes - 1));
  return bits <= k_first_bits ? 0 : bits - k_first_bits;
}

ToldBlock* ToldMemory::take(std::size_t count) noexcept {
  const unsigned size_class = class_of(count);
  const ToldBlock fresh{.count = static_cast<std::uint32_t>(count)};
  if (ToldBlock* const block = free_[size_class]) {
    free_[size_class] = block->next;
    if (block->next != nullptr) {  // the next call's
      __builtin_prefetch(block->next, 1);
      __builtin_prefetch(block->next->infos() + 1, 1);
    }
    return new (block) ToldBlock(fresh);
  }
  const std::size_t bytes = std::size_t{1} << (k_first_bits + size_class);
  if (left_ < bytes) {
    const std::size_t size = std::exchange(next_chunk_, std::min(4 * next_chunk_, k_huge_page));
    auto* const chunk = static_cast<std::byte*>(map_zeroed(size));
    if (chunk == nullptr) return nullptr;
    fresh_ = chunk;
    left_ = size;
  }
  left_ -= bytes;
  return new (std::exchange(fresh_, fresh_ + bytes)) ToldBlock(fresh);
}

void ToldMemory::give_back(ToldBlock* block) noexcept {
  ToldBlock*& first = free_[class_of(block->count)];
  block->next = first;
  first = block;
}

std::size_t ToldCalls::home_of(const void* begin) const noexcept {
  return table_place(reinterpret_cast<std::uintptr_t>(begin), bits_);
}

/// Its slot, or the free one where it would be. There is always a free one.
std::size_t ToldCalls::find(const void* begin) const noexcept {
  const std::size_t mask = (std::size_t{1} << bits_) - 1;
  std::size_t at = home_of(begin);
  while (slots_[at].begin != nullptr && slots_[at].begin != begin) at = (at + 1) & mask;
  return at;
}

bool ToldCalls::grow() noexcept {
  constexpr unsigned k_first_bits = 8;
  const unsigned bits = slots_ == nullptr ? k_first_bits : bits_ + 1;
  auto* const fresh = static_cast<Slot*>(map_zeroed(sizeof(Slot) << bits));
  if (fresh == nullptr) return false;
  Slot* const old = std::exchange(slots_, fresh);
  const std::size_t count = old == nullptr ? 0 : std::size_t{1} << bits_;
  bits_ = bits;
  for (std::size_t i = 0; i < count; ++i)
    if (old[i].begin != nullptr) slots_[find(old[i].begin)] = old[i];
  if (old != nullptr) munmap(old, count * sizeof(Slot));
  return true;
}

bool ToldCalls::put(ToldBlock* block) noexcept {
  if ((slots_ == nullptr || 2 * (used_ + 1) > std::size_t{1} << bits_) && !grow()) return false;
  Slot& slot = slots_[find(block->begin)];
  if (slot.begin == nullptr) ++used_;
  block->older = std::exchange(slot, Slot{block->begin, block}).block;
  return true;
}

/// Those behind it move up, as long as they are not at home (Knuth, The Art of Computer Programming 3, 6.4, R).
void ToldCalls::remove(std::size_t at) noexcept {
  const std::size_t mask = (std::size_t{1} << bits_) - 1;
  --used_;
  for (std::size_t next = at;;) {
    slots_[at] = {};
    do {
      next = (next + 1) & mask;
      if (slots_[next].begin == nullptr) return;
    } while (((next - home_of(slots_[next].begin)) & mask) < ((next - at) & mask));
    slots_[at] = slots_[next];
    at = next;
  }
}

void ToldCalls::prefetch(const void* begin) const noexcept {
  if (slots_ != nullptr) __builtin_prefetch(&slots_[home_of(begin)], 1);
}

ToldBlock* ToldCalls::find_block(const void* begin) const noexcept {
  return slots_ == nullptr || begin == nullptr ? nullptr : slots_[find(begin)].block;
}

ToldBlock* ToldCalls::next(std::size_t& place) const noexcept {
  const std::size_t mask = (std::size_t{1} << bits_) - 1;
  for (std::size_t i = 0; slots_ != nullptr && i < k_slots_at_once; ++i)
    if (ToldBlock* const block = slots_[++place & mask].block) return block;
  return nullptr;
}

std::size_t ToldCalls::round() const noexcept {
  return slots_ == nullptr ? 0 : used_ + (std::size_t{1} << bits_) / k_slots_at_once;
}

ToldBlock* ToldCalls::take(const void* begin) noexcept {
  if (slots_ == nullptr || begin == nullptr) return nullptr;
  const std::size_t at = find(begin);
  ToldBlock* const block = slots_[at].block;
  if (block == nullptr) return nullptr;
  __builtin_prefetch(block->infos() + 1, 1);  // the end of the first one may be on another line
  if (block->older != nullptr)
    slots_[at].block = block->older;
  else
    remove(at);
  return block;
}

}  // namespace jitunwind
