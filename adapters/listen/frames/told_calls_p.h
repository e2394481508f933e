// Memory and table of what was told. Straight from the kernel: malloc may be what calls us.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"

namespace jitunwind {

struct ToldBlock;

/// What one call has told, in one word: the only procedure of nearly all calls, or the first of the blocks of any
/// other.
class ToldCall {
 public:
  constexpr ToldCall() noexcept = default;
  /// Null: no call.
  explicit ToldCall(unw_dyn_info_t* lone) noexcept
      : word_(lone == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(lone) | k_lone) {}
  explicit ToldCall(ToldBlock* block) noexcept : word_(reinterpret_cast<std::uintptr_t>(block)) {}

  explicit operator bool() const noexcept { return word_ != 0; }
  bool operator==(const ToldCall&) const noexcept = default;
  bool is_lone() const noexcept { return (word_ & k_lone) != 0; }
  /// Precondition: it is a lone one.
  unw_dyn_info_t* lone() const noexcept { return reinterpret_cast<unw_dyn_info_t*>(word_ - k_lone); }
  /// Precondition: it is not a lone one. Null: no call.
  ToldBlock* block() const noexcept { return reinterpret_cast<ToldBlock*>(word_); }

  std::uintptr_t word() const noexcept { return word_; }
  static ToldCall of_word(std::uintptr_t word) noexcept {
    ToldCall call;
    call.word_ = word;
    return call;
  }

 private:
  static constexpr std::uintptr_t k_lone = 1;
  std::uintptr_t word_ = 0;
};

/// Procedures of one call, or a part of them; `count` descriptors behind it.
struct ToldBlock {
  ToldCall next{};   ///< more of the same call; a lone procedure is the last
  ToldCall older{};  ///< of the first block: an earlier call with the same address
  void* object = nullptr;
  std::uint32_t count = 0;  ///< what it was taken for
  bool handed_on = false;   ///< the next definition knows of the call, too
  bool is_gone = false;     ///< of the first block: none of the call is registered any more, since it is not mapped

  unw_dyn_info_t* infos() noexcept { return reinterpret_cast<unw_dyn_info_t*>(this + 1); }
};
static_assert(sizeof(ToldBlock) % alignof(unw_dyn_info_t) == 0);

/// Lone descriptors, which lie side by side so that the registry knows their nodes by their addresses
/// (docs/registry.md "Which node"). Each has a number, from 1 up, of few bits more than count them.
class ToldCells {
 public:
  using Number = std::uint32_t;
  static constexpr unsigned k_most_bits = 28;

  constexpr ToldCells() noexcept = default;
  /// One that was never taken. Null: out of memory.
  unw_dyn_info_t* take() noexcept;
  unw_dyn_info_t* operator[](Number number) const noexcept {
    return reinterpret_cast<unw_dyn_info_t*>(chunks_[number >> k_index_bits]) + number % k_indices;
  }
  static Number number_of(const unw_dyn_info_t* cell) noexcept;

 private:
  static constexpr unsigned k_index_bits = 15;
  static constexpr Number k_indices = Number{1} << k_index_bits;

  std::array<std::byte*, std::size_t{1} << (k_most_bits - k_index_bits)> chunks_{};
  Number next_chunk_ = 0;
  Number next_ = 0;  // in the newest chunk
  Number end_ = 0;
};

/// Blocks of few sizes, and lone descriptors. Thread-safe where it says so.
class ToldMemory {
 public:
  static constexpr std::size_t k_largest = 4096;
  static constexpr std::size_t k_most = (k_largest - sizeof(ToldBlock)) / sizeof(unw_dyn_info_t);

  constexpr ToldMemory() noexcept = default;
  /// For `count` descriptors, at most k_most. Null: out of memory.
  ToldBlock* take(std::size_t count) noexcept;
  void give_back(ToldBlock* block) noexcept;
  /// Null: out of memory.
  unw_dyn_info_t* take_lone() noexcept;
  /// Has one at hand, if there is memory.
  void have_spare() noexcept;
  /// The one at hand; null: there is none. Thread-safe.
  unw_dyn_info_t* take_spare() noexcept { return spare_.exchange(nullptr, std::memory_order_acquire); }
  /// Thread-safe.
  void give_back(unw_dyn_info_t* lone) noexcept;
  const ToldCells& cells() const noexcept { return cells_; }

 private:
  static constexpr unsigned k_first_bits = 7;  // 128 bytes: one descriptor
  static constexpr unsigned k_classes = 6;
  static unsigned class_of(std::size_t count) noexcept;
  /// Null: out of memory. At most k_largest.
  void* take_fresh(std::size_t bytes) noexcept;

  std::array<ToldBlock*, k_classes> free_{};
  unw_dyn_info_t* free_lone_ = nullptr;  // linked by `next`, as those that were given back since this was empty
  std::atomic<unw_dyn_info_t*> given_back_{nullptr};
  std::atomic<unw_dyn_info_t*> spare_{nullptr};
  std::byte* fresh_ = nullptr;
  std::size_t fresh_left_ = 0;
  std::size_t next_fresh_ = std::size_t{1} << 15;  // then larger ones, up to huge pages
  ToldCells cells_;
};

/// Calls by the address that they were given. A table of buckets that are cache lines, of four bytes a call: the number
/// of its cell, and as many bits of the address's hash as there is room for. What a bucket has no room for is in the
/// next one that has; so many calls have passed it, by which a search knows where to end. The cell of a lone procedure
/// is its descriptor; what other calls have told is behind a cell of their own. Not thread-safe.
class ToldCalls {
 public:
  /// The cells are the memory's, whose lock is this table's.
  constexpr explicit ToldCalls(ToldMemory& memory) noexcept : memory_(memory) {}
  /// Notes in the padding of a descriptor, which is not registered yet, what its call was given. False: it cannot be
  /// the call's cell, since that is more than 2 GiB away from the FDE.
  static bool make_cell(unw_dyn_info_t& lone, const void* begin) noexcept;
  /// False: out of memory. Earlier calls with the same address stay behind it. Precondition: a lone one has none, and
  /// make_cell() has made it one of `begin`.
  bool put(const void* begin, ToldCall call) noexcept;
  /// Has the memory fetched that the others look at first. Thread-safe.
  void prefetch(const void* begin) const noexcept;
  /// The latest call with this address; none.
  ToldCall take(const void* begin) noexcept;
  /// The same, which stays.
  ToldCall find_call(const void* begin) const noexcept;
  /// Goes round: the latest call of the next place that is used, of a few that are looked at; or none of these is.
  ToldCall next(std::size_t& place) const noexcept;
  /// So many calls of next() go round once.
  std::size_t round() const noexcept;

 private:
  using Number = ToldCells::Number;
  static constexpr std::size_t k_places_at_once = 64;
  static constexpr unsigned k_places = 15;  ///< of a bucket
  struct alignas(64) Bucket {
    std::array<std::uint32_t, k_places> calls;  ///< the first `count()` of them; 0 behind
    std::uint32_t word;                         ///< calls that found no room here << 4 | count

    unsigned count() const noexcept { return word & 15; }
    std::uint32_t passed() const noexcept { return word >> 4; }
  };
  static_assert(sizeof(Bucket) == 64);
  struct Place {
    std::uint32_t* call = nullptr;  ///< null: there is none
    unw_dyn_info_t* cell = nullptr;
    std::size_t bucket = 0;
  };

  std::size_t size() const noexcept { return std::size_t{1} << bits_; }
  std::size_t home_of(std::uint64_t hash) const noexcept;
  std::size_t behind(std::size_t bucket) const noexcept { return (bucket + 1) & (size() - 1); }
  std::uint32_t upper_bits(std::uint64_t hash) const noexcept;
  std::uint32_t number_mask() const noexcept { return (std::uint32_t{1} << number_bits_) - 1; }
  unw_dyn_info_t* cell_of(std::uint32_t call) const noexcept { return memory_.cells()[call & number_mask()]; }
  /// Bit i: call i has these upper bits.
  unsigned alike(const Bucket& bucket, std::uint32_t upper) const noexcept;
  Place find(const void* begin) const noexcept;
  void remove(const void* begin, const Place& place) noexcept;
  unw_dyn_info_t* make_handle(const void* begin, ToldCall call) noexcept;
  bool put_behind(const Place& place, const void* begin, ToldCall call) noexcept;
  bool has_room_for(Number number) noexcept;
  bool rebuild(unsigned bits, unsigned number_bits) noexcept;
  void insert(const void* begin, Number number) noexcept;

  ToldMemory& memory_;
  Bucket* buckets_ = nullptr;
  unsigned bits_ = 0;
  unsigned number_bits_ = 16;
  std::size_t used_ = 0;
  std::atomic<std::uintptr_t> buckets_and_bits_{0};  // of pages: for whoever fetches without the lock
};

}  // namespace jitunwind
