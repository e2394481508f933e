// Memory of the index, page by page: taken where procedures come, given back to the kernel where they are gone. A page
// that was one of a pool is one for ever, mapped and readable, so that a lookup may still look at it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/dyn_info/registry/index/mapped_memory_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// What the writers know of a page. Beside it, in a page that lookups do not read.
struct alignas(8) IndexPageNote {
  std::uint64_t address;  ///< of code; one that the page serves
  IndexPageNote* next;    ///< free ones
  std::uint16_t used;     ///< entries that lead to something
  std::uint8_t tier;
  std::uint8_t level;
  bool is_set_aside;
};

/// For the holder of the writers' lock.
class IndexPages {
 public:
  constexpr IndexPages() noexcept = default;

  /// Null: out of memory. Holds nothing but what it held when it was given back, or zeros.
  void* take() noexcept;
  /// Allocates nothing.
  void give_back(void* page) noexcept;

  static IndexPageNote& note_of(const void* at) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    return reinterpret_cast<IndexPageNote*>(address & ~(k_huge_page - 1))[address / k_page_size % k_pages];
  }
  static void* page_of(IndexPageNote& note) noexcept;

  /// Taken ones, and such as wait to be, of which there are few.
  std::size_t bytes() const noexcept { return (taken_ + spare_ + chunks_ * k_notes) * std::size_t{k_page_size}; }

 private:
  static constexpr std::size_t k_pages = k_huge_page / k_page_size;  ///< of a chunk
  static constexpr std::size_t k_notes = k_pages * sizeof(IndexPageNote) / k_page_size;
  /// Of the first chunk; further ones are in huge pages, until a page of theirs is given back.
  static constexpr std::size_t k_first_pages = 64;
  static constexpr std::size_t k_most_spare = 1024;
  static_assert(k_pages * sizeof(IndexPageNote) % k_page_size == 0);

  bool map_chunk() noexcept;
  static void strip(void* page) noexcept;

  IndexPageNote* first_spare_ = nullptr;  // have memory
  IndexPageNote* first_bare_ = nullptr;   // have none until they are written to
  std::byte* chunk_ = nullptr;            // the newest
  std::size_t fresh_ = 0;                 // first page of it that was never taken
  std::size_t end_ = 0;                   // of those that are
  std::size_t taken_ = 0;
  std::size_t spare_ = 0;
  std::size_t chunks_ = 0;
};

/// Has the kernel take the memory of a page, which reads as zeros from now on.
void strip_page(void* page) noexcept;

}  // namespace jitunwind
