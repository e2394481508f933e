// Memory of released objects, kept for the next object of the same kind.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// New memory costs a page fault for each page that is written, which takes longer than reading a page of another
/// process. This class keeps the four largest blocks of whole pages until the process ends, with their contents.
/// Thread-safe; nobody waits. Constant-initialised.
class SpareBlocks {
 public:
  /// Larger ones are not kept.
  static constexpr std::size_t k_largest = std::size_t{1} << 20;

  /// Returns a block of at least `size` bytes, or an empty block when there is none.
  Block take(std::size_t size) noexcept {
    for (std::atomic<std::uintptr_t>& place : places_) {
      if (pages_of(place.load()) * k_page_size < size) continue;
      const std::uintptr_t known = place.exchange(0);
      Block block = known == 0 ? Block() : Block::of(memory_of(known), pages_of(known) * k_page_size);
      if (block.bytes().size() >= size && known != 0) return block;
      give(std::move(block));  // another thread has replaced the block meanwhile
    }
    return {};
  }

  void give(Block block) noexcept {
    const std::size_t size = block.bytes().size();
    if (size == 0 || size > k_largest || size % k_page_size != 0) return;
    const std::uintptr_t word = reinterpret_cast<std::uintptr_t>(block.bytes().data()) | size / k_page_size;
    const auto pages_in = [](const std::atomic<std::uintptr_t>& place) { return pages_of(place.load()); };
    std::atomic<std::uintptr_t>& smallest = *std::ranges::min_element(places_, {}, pages_in);
    std::uintptr_t known = smallest.load();
    if (pages_of(known) >= pages_of(word) || !smallest.compare_exchange_strong(known, word)) return;
    (void)block.release();
    if (known != 0) (void)Block::of(memory_of(known), pages_of(known) * k_page_size);
  }

 private:
  // A block begins at a page boundary, so the lower bits of its address have room for its number of pages.
  static_assert(k_largest / k_page_size < k_page_size);
  static std::size_t pages_of(std::uintptr_t word) noexcept { return word % k_page_size; }
  static void* memory_of(std::uintptr_t word) noexcept { return reinterpret_cast<void*>(word - pages_of(word)); }

  std::array<std::atomic<std::uintptr_t>, 4> places_{};
};

}  // namespace jitunwind
