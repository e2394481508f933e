// Memory and table of what was told. Straight from the kernel: malloc may be what calls us.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/libunwind-dynamic.h"

namespace jitunwind {

/// Procedures of one call, or a part of them; `count` descriptors behind it.
struct ToldBlock {
  ToldBlock* next = nullptr;   ///< of the same call
  ToldBlock* older = nullptr;  ///< the first block of an earlier call with the same `begin`
  const void* begin = nullptr;
  void* object = nullptr;
  std::uint32_t count = 0;  ///< what it was taken for
  bool handed_on = false;   ///< the next definition knows of the call, too
  bool is_gone = false;     ///< of the first block: none of the call is registered any more, since it is not mapped

  unw_dyn_info_t* infos() noexcept { return reinterpret_cast<unw_dyn_info_t*>(this + 1); }
};
static_assert(sizeof(ToldBlock) % alignof(unw_dyn_info_t) == 0);

/// Blocks of few sizes. Not thread-safe.
class ToldMemory {
 public:
  static constexpr std::size_t k_largest = 4096;
  static constexpr std::size_t k_most = (k_largest - sizeof(ToldBlock)) / sizeof(unw_dyn_info_t);

  constexpr ToldMemory() noexcept = default;
  /// For `count` descriptors, at most k_most. Null: out of memory.
  ToldBlock* take(std::size_t count) noexcept;
  void give_back(ToldBlock* block) noexcept;

 private:
  static constexpr unsigned k_first_bits = 7;  // 128 bytes: one descriptor
  static constexpr unsigned k_classes = 6;
  static unsigned class_of(std::size_t count) noexcept;

  std::array<ToldBlock*, k_classes> free_{};
  std::byte* fresh_ = nullptr;
  std::size_t left_ = 0;
  std::size_t next_chunk_ = std::size_t{1} << 15;  // then larger ones, up to huge pages
};

/// First blocks by the address that a call was given: open addressing, at most half full. Not thread-safe.
class ToldCalls {
 public:
  constexpr ToldCalls() noexcept = default;
  /// False: out of memory. Earlier calls with the same address stay behind it.
  bool put(ToldBlock* block) noexcept;
  /// Has the memory fetched that put() would look at.
  void prefetch(const void* begin) const noexcept;
  /// The latest call with this address; null: none.
  ToldBlock* take(const void* begin) noexcept;
  /// The same, which stays.
  ToldBlock* find_block(const void* begin) const noexcept;
  /// Goes round: the latest call of the next slot that is used, of a few that are looked at; null: none of these is.
  ToldBlock* next(std::size_t& place) const noexcept;
  /// So many calls of next() go round once.
  std::size_t round() const noexcept;

 private:
  static constexpr std::size_t k_slots_at_once = 64;
  struct Slot {
    const void* begin;  // null: free
    ToldBlock* block;
  };
  std::size_t home_of(const void* begin) const noexcept;
  std::size_t find(const void* begin) const noexcept;
  void remove(std::size_t at) noexcept;
  bool grow() noexcept;

  Slot* slots_ = nullptr;
  unsigned bits_ = 0;
  std::size_t used_ = 0;
};

}  // namespace jitunwind
