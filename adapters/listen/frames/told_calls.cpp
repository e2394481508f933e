#include "jitunwind/adapters/listen/frames/told_calls_p.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <span>
#include <utility>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

unsigned ToldMemory::class_of(std::size_t count) noexcept {
  const std::size_t bytes = sizeof(ToldBlock) + count * sizeof(unw_dyn_info_t);
  const auto bits = static_cast<unsigned>(std::bit_width(bytes - 1));
  return bits <= k_first_bits ? 0 : bits - k_first_bits;
}

unw_dyn_info_t* ToldMemory::take_fresh_lone() noexcept {
  if (fresh_lone_ == fresh_lone_end_) {
    // Descriptors of a small number of calls are in small pages.
    constexpr std::size_t k_first = std::size_t{640} << 10;
    const bool is_first = fresh_lone_end_ == nullptr;
    auto* const chunk = static_cast<unw_dyn_info_t*>(map_zeroed(k_huge_page, is_first ? Pages::single : Pages::huge));
    if (chunk == nullptr) return nullptr;
    fresh_lone_ = chunk;
    fresh_lone_end_ = chunk + (is_first ? k_first : k_huge_page) / sizeof(unw_dyn_info_t);
  }
  return fresh_lone_++;
}

void* ToldMemory::take_fresh(std::size_t bytes) noexcept {
  if (fresh_left_ < bytes) {
    const std::size_t size = std::exchange(next_fresh_, std::min(4 * next_fresh_, k_huge_page));
    auto* const chunk = static_cast<std::byte*>(map_zeroed(size));
    if (chunk == nullptr) return nullptr;
    fresh_ = chunk;
    fresh_left_ = size;
  }
  fresh_left_ -= bytes;
  return std::exchange(fresh_, fresh_ + bytes);
}

ToldBlock* ToldMemory::take(std::size_t count) noexcept {
  const unsigned size_class = class_of(count);
  void* memory = free_[size_class];
  if (memory != nullptr)
    free_[size_class] = free_[size_class]->next.block();
  else
    memory = take_fresh(std::size_t{1} << (k_first_bits + size_class));
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
  if (free_lone_ == nullptr) return take_fresh_lone();
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

namespace {

std::size_t home_of(const void* begin, unsigned bits) noexcept {
  return table_place(reinterpret_cast<std::uintptr_t>(begin), bits);
}

}  // namespace

ToldCalls::Entry& ToldCalls::find(const void* begin) const noexcept {
  std::size_t at = home_of(begin, bits_);
  while (entries_[at].call && entries_[at].begin != begin) at = behind(at);
  return entries_[at];
}

void ToldCalls::remove(Entry& entry) noexcept {
  auto hole = static_cast<std::size_t>(&entry - entries_);
  for (std::size_t at = behind(hole); entries_[at].call; at = behind(at)) {
    // An entry whose home is behind the hole stays.
    const std::size_t from_home = (at - home_of(entries_[at].begin, bits_)) & (size() - 1);
    if (from_home < ((at - hole) & (size() - 1))) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = {};
  --used_;
}

bool ToldCalls::has_room() noexcept {
  if (4 * (used_ + 1) <= 3 * size()) return true;
  constexpr unsigned k_first_bits = 8;
  const std::size_t old_size = size();
  const unsigned bits = old_size == 0 ? k_first_bits : bits_ + 1;
  auto* const fresh = static_cast<Entry*>(map_zeroed(sizeof(Entry) << bits));
  if (fresh == nullptr) return false;
  Entry* const old = std::exchange(entries_, fresh);
  entries_and_bits_.store(reinterpret_cast<std::uintptr_t>(fresh) | bits, std::memory_order_relaxed);
  bits_ = bits;
  for (const Entry& entry : std::span(old, old_size))
    if (entry.call) find(entry.begin) = entry;
  if (old != nullptr) munmap(old, old_size * sizeof(Entry));
  return true;
}

bool ToldCalls::put(const void* begin, ToldCall call) noexcept {
  if (!has_room()) return false;
  Entry& entry = find(begin);
  if (entry.call)
    call.block()->older = entry.call;
  else
    ++used_;
  entry = {begin, call};
  return true;
}

void ToldCalls::prefetch(const void* begin) const noexcept {
  const std::uintptr_t word = entries_and_bits_.load(std::memory_order_relaxed);
  constexpr std::uintptr_t k_bits = k_page_size - 1;
  if (word == 0) return;
  const std::size_t place = home_of(begin, static_cast<unsigned>(word & k_bits)) * sizeof(Entry);
  __builtin_prefetch(reinterpret_cast<const void*>((word & ~k_bits) + place), 1);
}

ToldCall ToldCalls::find_call(const void* begin) const noexcept {
  return entries_ == nullptr ? ToldCall() : find(begin).call;
}

ToldCall ToldCalls::next(std::size_t& place) const noexcept {
  for (std::size_t i = 0; entries_ != nullptr && i < k_places_at_once; ++i)
    if (const ToldCall call = entries_[++place & (size() - 1)].call) return call;
  return {};
}

ToldCall ToldCalls::take(const void* begin) noexcept {
  if (entries_ == nullptr) return {};
  Entry& entry = find(begin);
  const ToldCall call = entry.call;
  if (!call) return {};
  if (call.is_lone())
    prefetch_changing(call.lone());
  else if (const ToldCall older = call.block()->older)
    return entry.call = older, call;
  remove(entry);
  return call;
}

}  // namespace jitunwind
