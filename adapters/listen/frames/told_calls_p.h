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

/// Blocks of few sizes, and lone descriptors, which lie side by side so that the registry knows their nodes by their
/// addresses (docs/registry.md "Which node"). Thread-safe where it says so.
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

 private:
  static constexpr unsigned k_first_bits = 7;  // 128 bytes: one descriptor
  static constexpr unsigned k_classes = 6;
  static unsigned class_of(std::size_t count) noexcept;

  class Fresh {
   public:
    /// Null: out of memory. At most k_largest.
    void* take(std::size_t bytes) noexcept;

   private:
    std::byte* begin_ = nullptr;
    std::size_t left_ = 0;
    std::size_t next_chunk_ = std::size_t{1} << 15;  // then larger ones, up to huge pages
  };

  std::array<ToldBlock*, k_classes> free_{};
  unw_dyn_info_t* free_lone_ = nullptr;  // linked by `next`, as those that were given back since this was empty
  std::atomic<unw_dyn_info_t*> given_back_{nullptr};
  std::atomic<unw_dyn_info_t*> spare_{nullptr};
  Fresh fresh_;
  Fresh fresh_lone_;
};

/// Calls by the address that they were given: open addressing, at most half full. Not thread-safe.
class ToldCalls {
 public:
  constexpr ToldCalls() noexcept = default;
  /// False: out of memory. Earlier calls with the same address stay behind it. Precondition: a lone one has none.
  bool put(const void* begin, ToldCall call) noexcept;
  /// Has the memory fetched that the others look at first. Thread-safe.
  void prefetch(const void* begin) const noexcept;
  /// The latest call with this address; none.
  ToldCall take(const void* begin) noexcept;
  /// The same, which stays.
  ToldCall find_call(const void* begin) const noexcept;
  /// Goes round: the latest call of the next slot that is used, of a few that are looked at; or none of these is.
  ToldCall next(std::size_t& place) const noexcept;
  /// So many calls of next() go round once.
  std::size_t round() const noexcept;

 private:
  static constexpr std::size_t k_slots_at_once = 64;
  struct Slot {
    const void* begin;  // null: free
    ToldCall call;
  };
  std::size_t home_of(const void* begin) const noexcept;
  std::size_t find(const void* begin) const noexcept;
  void remove(std::size_t at) noexcept;
  bool grow() noexcept;

  Slot* slots_ = nullptr;
  unsigned bits_ = 0;
  std::size_t used_ = 0;
  std::atomic<std::uintptr_t> slots_and_bits_{0};  // of pages: for whoever fetches without the lock
};

}  // namespace jitunwind
