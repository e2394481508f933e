#include <sys/auxv.h>
#include <sys/mman.h>

#include "jitunwind/dyn_info/registry/index/procedure_index_p.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"

namespace jitunwind {

void strip_page(void* page) noexcept {
  // If pages are larger, a part of one cannot be given back.
  if (getauxval(AT_PAGESZ) != k_page_size) return;
  const ErrnoKeeper keep_errno;
  madvise(page, k_page_size, MADV_DONTNEED);
}

void* IndexPages::page_of(IndexPageNote& note) noexcept {
  auto* const chunk = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(&note) & ~(k_huge_page - 1));
  return chunk + static_cast<std::size_t>(&note - reinterpret_cast<IndexPageNote*>(chunk)) * k_page_size;
}

bool IndexPages::map_chunk() noexcept {
  const bool first = chunks_ == 0;
  auto* const chunk = static_cast<std::byte*>(map_zeroed(k_huge_page, first ? Pages::single : Pages::huge));
  if (chunk == nullptr) return false;
  chunk_ = chunk;
  fresh_ = k_notes;
  end_ = first ? k_first_pages : k_pages;
  ++chunks_;
  return true;
}

/// Forbids huge pages in the chunk first: else the kernel would make one again of the rest of the chunk and this page.
void IndexPages::strip(void* page) noexcept {
  auto* const chunk = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(page) & ~(k_huge_page - 1));
  IndexPageNote& of_chunk = *reinterpret_cast<IndexPageNote*>(chunk);  // of a page of notes, not of the pool
  if (of_chunk.used == 0) {
    const ErrnoKeeper keep_errno;
    madvise(chunk, k_huge_page, MADV_NOHUGEPAGE);
    of_chunk.used = 1;
  }
  strip_page(page);
}

void* IndexPages::take() noexcept {
  void* page = nullptr;
  if (IndexPageNote*& first = first_spare_ != nullptr ? first_spare_ : first_bare_; first != nullptr) {
    if (&first == &first_spare_) --spare_;
    page = page_of(*first);
    first = first->next;
  } else {
    if (fresh_ == end_ && !map_chunk()) return nullptr;
    page = chunk_ + fresh_++ * k_page_size;
  }
  ++taken_;
  note_of(page) = {};
  return page;
}

void IndexPages::give_back(void* page) noexcept {
  const bool keep = spare_ < k_most_spare;
  if (keep) {
    ++spare_;
  } else {
    strip(page);
  }
  IndexPageNote*& first = keep ? first_spare_ : first_bare_;
  IndexPageNote& note = note_of(page);
  note.next = first;
  first = &note;
  --taken_;
}

}  // namespace jitunwind
