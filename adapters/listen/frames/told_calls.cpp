#include "jitunwind/adapters/listen/frames/told_calls_p.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
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

/// Occupies the place of a chunk's first cell, so no cell has that number.
struct ChunkHead {
  ToldCells::Number number;
};

unw_dyn_info_t* ToldCells::take() noexcept {
  // Cells of a small number of calls are in small pages.
  constexpr Number k_first = (std::size_t{640} << 10) / sizeof(unw_dyn_info_t);
  if (next_ == end_) {
    if (next_chunk_ == chunks_.size()) return nullptr;
    const bool first = next_chunk_ == 0;
    void* const chunk = map_zeroed(k_huge_page, first ? Pages::single : Pages::huge);
    if (chunk == nullptr) return nullptr;
    new (chunk) ChunkHead{next_chunk_};
    chunks_[next_chunk_++] = static_cast<std::byte*>(chunk);
    next_ = 1;
    end_ = first ? k_first : k_huge_page / sizeof(unw_dyn_info_t);
  }
  return (*this)[((next_chunk_ - 1) << k_index_bits) + next_++];
}

ToldCells::Number ToldCells::number_of(const unw_dyn_info_t* cell) noexcept {
  static_assert(k_huge_page / sizeof(unw_dyn_info_t) <= k_indices);
  const auto address = reinterpret_cast<std::uintptr_t>(cell);
  const std::uintptr_t in_chunk = address % k_huge_page;
  const auto* const head = reinterpret_cast<const ChunkHead*>(address - in_chunk);
  return (head->number << k_index_bits) + static_cast<Number>(in_chunk / sizeof(unw_dyn_info_t));
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
  if (free_lone_ == nullptr) return cells_.take();
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

// The table. The upper bits of a hash select the bucket, and the next ones are stored beside the number.

std::size_t ToldCalls::home_of(std::uint64_t hash) const noexcept {
  return static_cast<std::size_t>(hash >> (64 - bits_));
}

std::uint32_t ToldCalls::upper_bits(std::uint64_t hash) const noexcept {
  return static_cast<std::uint32_t>(hash << bits_ >> 32) & ~number_mask();
}

namespace {

std::uint64_t hash_of(const void* begin) noexcept { return spread(reinterpret_cast<std::uintptr_t>(begin)); }

/// The argument of the cell's call. Precondition: it is the cell of a call. `pad` is the distance of the argument from
/// the FDE.
const void* begin_of(const unw_dyn_info_t& cell) noexcept {
  const auto distance = static_cast<std::uint64_t>(std::int64_t{cell.pad});
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(cell.u.rti.segbase + distance));
}

void prefetch_begin(const unw_dyn_info_t& cell) noexcept {
  __builtin_prefetch(&cell.pad);
  __builtin_prefetch(&cell.u.rti.segbase);
}

/// A handle is not the descriptor of a procedure.
bool is_handle(const unw_dyn_info_t& cell) noexcept { return cell.end_ip == 0; }

ToldCall call_of(unw_dyn_info_t* cell) noexcept {
  return is_handle(*cell) ? ToldCall::of_word(static_cast<std::uintptr_t>(cell->gp)) : ToldCall(cell);
}

}  // namespace

bool ToldCalls::make_cell(unw_dyn_info_t& lone, const void* begin) noexcept {
  const auto distance = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin) - lone.u.rti.segbase);
  if (distance != static_cast<std::int32_t>(distance)) return false;
  lone.pad = static_cast<std::int32_t>(distance);
  return true;
}

unw_dyn_info_t* ToldCalls::make_handle(const void* begin, ToldCall call) noexcept {
  unw_dyn_info_t* const handle = memory_.take_lone();
  if (handle == nullptr) return nullptr;
  *handle = {};
  handle->u.rti.segbase = reinterpret_cast<std::uintptr_t>(begin);
  handle->gp = call.word();
  return handle;
}

/// Avoids a branch for each place, which could not be predicted.
[[gnu::always_inline]] inline unsigned ToldCalls::alike(const Bucket& bucket, std::uint32_t upper) const noexcept {
  using Four = std::uint32_t __attribute__((vector_size(16)));
  Four found{};
  const auto look_at = [&](unsigned first) {
    Four calls;
    std::memcpy(&calls, reinterpret_cast<const std::uint32_t*>(&bucket) + first, sizeof calls);
    found |= reinterpret_cast<Four>((calls ^ upper) >> number_bits_ == 0) & (Four{1, 2, 4, 8} << first);
  };
  look_at(0), look_at(4), look_at(8), look_at(12);
  const std::uint32_t all = found[0] | found[1] | found[2] | found[3];
  return all & ((1u << bucket.count()) - 1);
}

ToldCalls::Place ToldCalls::find(const void* begin) const noexcept {
  if (buckets_ == nullptr || begin == nullptr) return {};
  const std::uint64_t hash = hash_of(begin);
  for (std::size_t at = home_of(hash);; at = behind(at)) {
    Bucket& bucket = buckets_[at];
    for (unsigned left = alike(bucket, upper_bits(hash)); left != 0; left &= left - 1) {
      std::uint32_t& call = bucket.calls[static_cast<unsigned>(std::countr_zero(left))];
      unw_dyn_info_t* const cell = cell_of(call);
      prefetch_changing(cell);
      if (jitunwind::begin_of(*cell) == begin) return {&call, cell, at};
    }
    if (bucket.passed() == 0) return {};
  }
}

/// Precondition: there is room.
void ToldCalls::insert(const void* begin, Number number) noexcept {
  const std::uint64_t hash = hash_of(begin);
  for (std::size_t at = home_of(hash);; at = behind(at)) {
    Bucket& bucket = buckets_[at];
    if (const unsigned count = bucket.count(); count != k_places) {
      bucket.calls[count] = upper_bits(hash) | number;
      ++bucket.word;
      return;
    }
    bucket.word += 16;
  }
}

/// The last call of the bucket moves to the free place.
void ToldCalls::remove(const void* begin, const Place& place) noexcept {
  Bucket& bucket = buckets_[place.bucket];
  std::uint32_t& last = bucket.calls[bucket.count() - 1];
  *place.call = last;
  last = 0;
  --bucket.word;
  --used_;
  for (std::size_t at = home_of(hash_of(begin)); at != place.bucket; at = behind(at)) buckets_[at].word -= 16;
}

bool ToldCalls::rebuild(unsigned bits, unsigned number_bits) noexcept {
  auto* const fresh = static_cast<Bucket*>(map_zeroed(sizeof(Bucket) << bits));
  if (fresh == nullptr) return false;
  const std::uint32_t old_mask = number_mask();
  const std::size_t old_size = buckets_ == nullptr ? 0 : size();
  Bucket* const old = std::exchange(buckets_, fresh);
  buckets_and_bits_.store(reinterpret_cast<std::uintptr_t>(fresh) | bits, std::memory_order_relaxed);
  bits_ = bits;
  number_bits_ = number_bits;
  for (std::size_t i = 0; i < old_size; ++i) {
    for (const std::uint32_t call : old[std::min(i + 1, old_size - 1)].calls)
      prefetch_begin(*memory_.cells()[call & old_mask]);
    for (const std::uint32_t call : old[i].calls)
      if (const Number number = call & old_mask; number != 0)
        insert(jitunwind::begin_of(*memory_.cells()[number]), number);
  }
  if (old != nullptr) munmap(old, old_size * sizeof(Bucket));
  return true;
}

/// Places move if the table is rebuilt.
bool ToldCalls::has_room_for(Number number) noexcept {
  constexpr unsigned k_first_bits = 6;
  // Every call is inserted again when a table grows, so small tables grow by more.
  constexpr unsigned k_small_bits = 12;
  const unsigned number_bits = std::max(number_bits_, static_cast<unsigned>(std::bit_width(number)));
  if (buckets_ == nullptr) return rebuild(k_first_bits, number_bits);
  unsigned bits = bits_;
  if (8 * (used_ + 1) > 7 * k_places * size()) bits += bits < k_small_bits ? 2 : 1;
  return (bits == bits_ && number_bits == number_bits_) || rebuild(bits, number_bits);
}

/// Precondition: the place has an earlier call with the same address.
bool ToldCalls::put_behind(const Place& place, const void* begin, ToldCall call) noexcept {
  call.block()->older = call_of(place.cell);
  if (is_handle(*place.cell)) {
    place.cell->gp = call.word();
    return true;
  }
  unw_dyn_info_t* const handle = make_handle(begin, call);
  if (handle == nullptr || !has_room_for(ToldCells::number_of(handle))) {
    if (handle != nullptr) memory_.give_back(handle);
    return false;
  }
  std::uint32_t& word = *find(begin).call;
  word = (word & ~number_mask()) | ToldCells::number_of(handle);
  return true;
}

bool ToldCalls::put(const void* begin, ToldCall call) noexcept {
  if (!call.is_lone())
    if (const Place place = find(begin); place.call != nullptr) return put_behind(place, begin, call);
  unw_dyn_info_t* const cell = call.is_lone() ? call.lone() : make_handle(begin, call);
  if (cell == nullptr) return false;
  const Number number = ToldCells::number_of(cell);
  if (!has_room_for(number)) {
    if (!call.is_lone()) memory_.give_back(cell);
    return false;
  }
  insert(begin, number);
  ++used_;
  return true;
}

void ToldCalls::prefetch(const void* begin) const noexcept {
  const std::uintptr_t word = buckets_and_bits_.load(std::memory_order_relaxed);
  constexpr std::uintptr_t k_bits = k_page_size - 1;
  if (word == 0) return;
  const auto bits = static_cast<unsigned>(word & k_bits);
  const std::size_t place = static_cast<std::size_t>(hash_of(begin) >> (64 - bits)) * sizeof(Bucket);
  __builtin_prefetch(reinterpret_cast<const void*>((word & ~k_bits) + place), 1);
}

ToldCall ToldCalls::find_call(const void* begin) const noexcept {
  const Place place = find(begin);
  return place.call == nullptr ? ToldCall() : call_of(place.cell);
}

ToldCall ToldCalls::next(std::size_t& place) const noexcept {
  constexpr std::size_t k_words = sizeof(Bucket) / sizeof(std::uint32_t);
  for (std::size_t i = 0; buckets_ != nullptr && i < k_places_at_once; ++i) {
    ++place;
    const std::size_t in_bucket = place % k_words;
    if (in_bucket == k_places) continue;
    const std::uint32_t call = buckets_[place / k_words & (size() - 1)].calls[in_bucket];
    if (call != 0) return call_of(cell_of(call));
  }
  return {};
}

std::size_t ToldCalls::round() const noexcept {
  constexpr std::size_t k_words = sizeof(Bucket) / sizeof(std::uint32_t);
  return buckets_ == nullptr ? 0 : used_ + size() * k_words / k_places_at_once;
}

ToldCall ToldCalls::take(const void* begin) noexcept {
  const Place place = find(begin);
  if (place.call == nullptr) return {};
  const ToldCall call = call_of(place.cell);
  if (!is_handle(*place.cell)) {
    remove(begin, place);
    return call;
  }
  if (const ToldCall older = call.is_lone() ? ToldCall() : call.block()->older) {
    place.cell->gp = older.word();
  } else {
    remove(begin, place);
    memory_.give_back(place.cell);
  }
  return call;
}

}  // namespace jitunwind
