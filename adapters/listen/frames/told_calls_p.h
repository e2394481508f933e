// Memory and table of announced calls. The memory comes directly from the kernel: malloc may be the caller.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"

namespace jitunwind {

struct ToldBlock;

/// The procedures of one call, in one word: the only procedure of nearly all calls, or the first block of any other
/// call.
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
  /// Precondition: it is a single one.
  unw_dyn_info_t* lone() const noexcept { return reinterpret_cast<unw_dyn_info_t*>(word_ - k_lone); }
  /// Precondition: it is not a single one. Null: no call.
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

/// Procedures of one call, or a part of them; `count` descriptors follow it.
struct ToldBlock {
  ToldCall next{};   ///< more of the same call; a single procedure is the last
  ToldCall older{};  ///< in the first block: an earlier call with the same address
  void* object = nullptr;
  std::uint32_t count = 0;  ///< number of descriptors it was taken for
  bool handed_on = false;   ///< the next definition also got the call
  bool is_gone = false;     ///< in the first block: the call's procedures are cancelled, since its code is unmapped

  unw_dyn_info_t* infos() noexcept { return reinterpret_cast<unw_dyn_info_t*>(this + 1); }
};
static_assert(sizeof(ToldBlock) % alignof(unw_dyn_info_t) == 0);

/// Single descriptors, side by side, so that the registry finds their nodes by their addresses (docs/registry.md "Which
/// node"). Each has a number, from 1 up, with few bits more than the count needs.
class ToldCells {
 public:
  using Number = std::uint32_t;
  static constexpr unsigned k_most_bits = 28;

  constexpr ToldCells() noexcept = default;
  /// Takes a cell that was never taken. Null: out of memory.
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

/// Allocator for blocks of few sizes, and for single descriptors. Only functions that say so are thread-safe.
class ToldMemory {
 public:
  static constexpr std::size_t k_largest = 4096;
  static constexpr std::size_t k_most = (k_largest - sizeof(ToldBlock)) / sizeof(unw_dyn_info_t);

  constexpr ToldMemory() noexcept = default;
  /// Takes a block for `count` descriptors, at most k_most. Null: out of memory.
  ToldBlock* take(std::size_t count) noexcept;
  void give_back(ToldBlock* block) noexcept;
  /// Null: out of memory.
  unw_dyn_info_t* take_lone() noexcept;
  /// Reserves a spare descriptor, if there is memory.
  void have_spare() noexcept;
  /// Takes the spare descriptor; null: there is none. Thread-safe.
  unw_dyn_info_t* take_spare() noexcept { return spare_.exchange(nullptr, std::memory_order_acquire); }
  /// Thread-safe.
  void give_back(unw_dyn_info_t* lone) noexcept;
  const ToldCells& cells() const noexcept { return cells_; }

 private:
  static constexpr unsigned k_first_bits = 7;  // 128 bytes: one descriptor
  static constexpr unsigned k_classes = 6;
  static unsigned class_of(std::size_t count) noexcept;
  /// Null: out of memory. The limit is k_largest.
  void* take_fresh(std::size_t bytes) noexcept;

  std::array<ToldBlock*, k_classes> free_{};
  unw_dyn_info_t* free_lone_ = nullptr;  // linked by `next`, like given_back_, which refills it
  std::atomic<unw_dyn_info_t*> given_back_{nullptr};
  std::atomic<unw_dyn_info_t*> spare_{nullptr};
  std::byte* fresh_ = nullptr;
  std::size_t fresh_left_ = 0;
  std::size_t next_fresh_ = std::size_t{1} << 15;  // then larger ones, up to huge pages
  ToldCells cells_;
};

/// Calls by the address of their argument. The table has buckets of a cache line, with four bytes for each call: the
/// number of its cell, and as many bits of the address's hash as fit. A call that finds its bucket full is in the next
/// one with room. Each bucket counts the calls that have passed it, so a search knows where to end. The cell of a
/// single procedure is its descriptor; other calls have a separate cell. Not thread-safe.
class ToldCalls {
 public:
  /// The cells belong to the memory; one lock guards both.
  constexpr explicit ToldCalls(ToldMemory& memory) noexcept : memory_(memory) {}
  /// Stores the argument of the call in the padding of a descriptor that is not registered yet. False: it cannot be the
  /// call's cell, since the argument is more than 2 GiB away from the FDE.
  static bool make_cell(unw_dyn_info_t& lone, const void* begin) noexcept;
  /// False: out of memory. Earlier calls with the same address stay, older than this one. Precondition for a single
  /// procedure: there is no earlier call, and make_cell() has stored `begin` in it.
  bool put(const void* begin, ToldCall call) noexcept;
  /// Prefetches the memory that the other functions read first. Thread-safe.
  void prefetch(const void* begin) const noexcept;
  /// Takes the latest call with this address; empty: there is none.
  ToldCall take(const void* begin) noexcept;
  /// Finds the latest call with this address, and leaves it in the table.
  ToldCall find_call(const void* begin) const noexcept;
  /// Iterates in a circle over the places: returns the latest call of the next used place among a few; empty: none of
  /// these is used.
  ToldCall next(std::size_t& place) const noexcept;
  /// The number of calls of next() for one round.
  std::size_t round() const noexcept;

 private:
  using Number = ToldCells::Number;
  static constexpr std::size_t k_places_at_once = 64;
  static constexpr unsigned k_places = 15;  ///< in a bucket
  struct alignas(64) Bucket {
    std::array<std::uint32_t, k_places> calls;  ///< the first `count()` of them; 0 after these
    std::uint32_t word;                         ///< calls that passed this full bucket << 4 | count

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
  /// Bit i is set if call i has these upper bits.
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
  std::atomic<std::uintptr_t> buckets_and_bits_{0};  // address of pages: for prefetches without the lock
};

}  // namespace jitunwind
