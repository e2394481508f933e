#include "jitunwind/adapters/listen/frames/told_calls_p.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "jitunwind/dyn_info/registry/index/expected_change_internal.h"
#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

unsigned ToldMemory::class_of(std::size_t count) noexcept {
  const std::size_t bytes = sizeof(ToldBlock) + count * sizeof(unw_dyn_info_t);
  const auto bits = static_cast<unsigned>(std::bit_width(bytes - 1));
  return bits <= k_first_bits ? 0 : bits - k_first_bits;
}

void* ToldMemory::Fresh::take(std::size_t bytes) noexcept {
  if (left_ < bytes) {
    const std::size_t size = std::exchange(next_chunk_, std::min(4 * next_chunk_, k_huge_page));
    auto* const chunk = static_cast<std::byte*>(map_zeroed(size));
    if (chunk == nullptr) return nullptr;
    begin_ = chunk;
    left_ = size;
  }
  left_ -= bytes;
  return std::exchange(begin_, begin_ + bytes);
}

ToldBlock* ToldMemory::take(std::size_t count) noexcept {
  const unsigned size_class = class_of(count);
  void* memory = free_[size_class];
  if (memory != nullptr)
    free_[size_class] = free_[size_class]->next.block();
  else
    memory = fresh_.take(std::size_t{1} << (k_first_bits + size_class));
  return memory == nullptr ? nullptr : new (memory) ToldBlock{.count = static_cast<std::uint32_t>(count)};
}

void ToldMemory::give_back(ToldBlock* block) noexcept {
  ToldBlock*& first = free_[class_of(block->count)];
  block->next = ToldCall(first);
  first = block;
}

unw_dyn_info_t* ToldMemory::take_lone() noexcept {
  if (free_lone_ == nullptr && given_back_.load(std::memory_order_relaxed) != nullptr)
    free_lone_ = given_back_.exchange(nullptr, std::memory_order_acquire);
  if (free_lone_ == nullptr) return static_cast<unw_dyn_info_t*>(fresh_lone_.take(sizeof(unw_dyn_info_t)));
  unw_dyn_info_t* const taken = std::exchange(free_lone_, free_lone_->next);
  if (free_lone_ != nullptr) prefetch_changing(free_lone_);  // for a later call
  return taken;
}

void ToldMemory::have_spare() noexcept {
  if (spare_.load(std::memory_order_relaxed) != nullptr) return;
  spare_.store(take_lone(), std::memory_order_release);
}

void ToldMemory::give_back(unw_dyn_info_t* lone) noexcept {
  unw_dyn_info_t* first = given_back_.load(std::memory_order_relaxed);
  do lone->next = first;
  while (!given_back_.compare_exchange_weak(first, lone, std::memory_order_release, std::memory_order_relaxed));
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
  slots_and_bits_.store(reinterpret_cast<std::uintptr_t>(fresh) | bits, std::memory_order_relaxed);
  const std::size_t count = old == nullptr ? 0 : std::size_t{1} << bits_;
  bits_ = bits;
  for (std::size_t i = 0; i < count; ++i)
    if (old[i].begin != nullptr) slots_[find(old[i].begin)] = old[i];
  if (old != nullptr) munmap(old, count * sizeof(Slot));
  return true;
}

bool ToldCalls::put(const void* begin, ToldCall call) noexcept {
  if ((slots_ == nullptr || 2 * (used_ + 1) > std::size_t{1} << bits_) && !grow()) return false;
  Slot& slot = slots_[find(begin)];
  if (slot.begin == nullptr)
    ++used_;
  else
    call.block()->older = slot.call;
  slot = {begin, call};
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
  const std::uintptr_t word = slots_and_bits_.load(std::memory_order_relaxed);
  constexpr std::uintptr_t k_bits = k_page_size - 1;
  if (word == 0) return;
  const std::size_t place =
      table_place(reinterpret_cast<std::uintptr_t>(begin), static_cast<unsigned>(word & k_bits)) * sizeof(Slot);
  __builtin_prefetch(reinterpret_cast<const void*>((word & ~k_bits) + place), 1);
}

ToldCall ToldCalls::find_call(const void* begin) const noexcept {
  return slots_ == nullptr || begin == nullptr ? ToldCall() : slots_[find(begin)].call;
}

ToldCall ToldCalls::next(std::size_t& place) const noexcept {
  const std::size_t mask = (std::size_t{1} << bits_) - 1;
  for (std::size_t i = 0; slots_ != nullptr && i < k_slots_at_once; ++i)
    if (const ToldCall call = slots_[++place & mask].call) return call;
  return {};
}

std::size_t ToldCalls::round() const noexcept {
  return slots_ == nullptr ? 0 : used_ + (std::size_t{1} << bits_) / k_slots_at_once;
}

ToldCall ToldCalls::take(const void* begin) noexcept {
  if (slots_ == nullptr || begin == nullptr) return {};
  const std::size_t at = find(begin);
  const ToldCall call = slots_[at].call;
  if (call.is_lone()) {
    prefetch_changing(call.lone());
    remove(at);
  } else if (ToldBlock* const block = call.block()) {
    if (block->older)
      slots_[at].call = block->older;
    else
      remove(at);
  }
  return call;
}

}  // namespace jitunwind
