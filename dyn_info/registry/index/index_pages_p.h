// Pages of memory for the index. The index takes a page where procedures come, and gives it back to the kernel where
// they are gone. A page of a pool stays mapped and readable for ever, so that a lookup may still look at it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// The writers' record of a page. It lies at the start of the page's chunk, in a page that lookups do not read.
struct alignas(8) IndexPageNote {
  std::uint64_t address;  ///< a code address that the page serves
  IndexPageNote* next;    ///< next free page
  std::uint16_t used;     ///< number of entries that lead to something
  std::uint8_t tier;
  std::uint8_t level;
  bool is_set_aside;
};

/// Only the holder of the writers' lock uses it.
class IndexPages {
 public:
  constexpr IndexPages() noexcept = default;

  /// Returns null if there is no memory. The page holds what it held when it was given back, or zeros.
  void* take() noexcept;
  /// Allocates nothing.
  void give_back(void* page) noexcept;

  static IndexPageNote& note_of(const void* at) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return reinterpret_cast<IndexPageNote*>(address & ~(k_huge_page - 1))[address / k_page_size % k_pages];
  }
  static void* page_of(IndexPageNote& note) noexcept;

  /// Counts pages that are taken, the few spare ones that still have memory, and those with notes.
  std::size_t bytes() const noexcept { return (taken_ + spare_ + chunks_ * k_notes) * std::size_t{k_page_size}; }

 private:
  static constexpr std::size_t k_pages = k_huge_page / k_page_size;  ///< pages in a chunk
  static constexpr std::size_t k_notes = k_pages * sizeof(IndexPageNote) / k_page_size;
  /// The pages of the first chunk. Further chunks are in huge pages, until one of their pages is given back.
  static constexpr std::size_t k_first_pages = 64;
  static constexpr std::size_t k_most_spare = 1024;
  static_assert(k_pages * sizeof(IndexPageNote) % k_page_size == 0);

  bool map_chunk() noexcept;
  static void strip(void* page) noexcept;

  IndexPageNote* first_spare_ = nullptr;  // spare pages that have memory
  IndexPageNote* first_bare_ = nullptr;   // spare pages that have none until they are written to
  std::byte* chunk_ = nullptr;            // the newest chunk
  std::size_t fresh_ = 0;                 // number of its first page that was never taken
  std::size_t end_ = 0;                   // number behind its last page that may be taken
  std::size_t taken_ = 0;
  std::size_t spare_ = 0;
  std::size_t chunks_ = 0;
};

/// Gives the memory of a page to the kernel. The page reads as zeros from now on.
void strip_page(void* page) noexcept;

}  // namespace jitunwind
