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

 private:
  static constexpr unsigned k_first_bits = 7;  // 128 bytes: one descriptor
  static constexpr unsigned k_classes = 6;
  static unsigned class_of(std::size_t count) noexcept;
  /// Null: out of memory. The limit is k_largest.
  void* take_fresh(std::size_t bytes) noexcept;
  /// Single descriptors are side by side, so that the registry finds their nodes by their addresses (docs/registry.md
  /// "Which node"). Null: out of memory.
  unw_dyn_info_t* take_fresh_lone() noexcept;

  std::array<ToldBlock*, k_classes> free_{};
  unw_dyn_info_t* free_lone_ = nullptr;  // linked by `next`, like given_back_, which refills it
  std::atomic<unw_dyn_info_t*> given_back_{nullptr};
  std::atomic<unw_dyn_info_t*> spare_{nullptr};
  std::byte* fresh_ = nullptr;
  std::size_t fresh_left_ = 0;
  std::size_t next_fresh_ = std::size_t{1} << 15;  // then larger ones, up to huge pages
  unw_dyn_info_t* fresh_lone_ = nullptr;
  unw_dyn_info_t* fresh_lone_end_ = nullptr;
};

/// Calls by the address of their argument: a hash table with linear probing, in which an entry moves towards its home
/// when one before it is removed (Knuth, The Art of Computer Programming, volume 3, algorithm 6.4 R). Not thread-safe.
class ToldCalls {
 public:
  constexpr ToldCalls() noexcept = default;
  /// False: out of memory. Earlier calls with the same address stay, older than this one. Precondition for a single
  /// procedure: there is no earlier call.
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
  std::size_t round() const noexcept { return used_ + size() / k_places_at_once; }

 private:
  static constexpr std::size_t k_places_at_once = 64;
  struct Entry {
    const void* begin;
    ToldCall call;  ///< empty: so is the entry
  };

  std::size_t size() const noexcept { return entries_ == nullptr ? 0 : std::size_t{1} << bits_; }
  std::size_t behind(std::size_t place) const noexcept { return (place + 1) & (size() - 1); }
  /// The entry with this address, or the empty one that ends its search. Precondition: there is memory.
  Entry& find(const void* begin) const noexcept;
  void remove(Entry& entry) noexcept;
  bool has_room() noexcept;

  Entry* entries_ = nullptr;
  unsigned bits_ = 0;
  std::size_t used_ = 0;
  std::atomic<std::uintptr_t> entries_and_bits_{0};  // address of pages: for prefetches without the lock
};

}  // namespace jitunwind
