#include "jitunwind/unwind_core/memory/kept_pages_p.h"

#include <algorithm>
#include <new>

namespace jitunwind {

std::size_t KeptPages::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    if (next < at) break;
    const std::size_t offset = static_cast<std::size_t>(next - page_of(next));
    const std::size_t size = std::min(into.size() - done, std::size_t{k_page_size} - offset);
    const Page* page = find(page_of(next));
    if (!page && into.size() - done >= k_large) return done + memory_.read(next, into.subspan(done), window);
    if (!page) page = fetch(page_of(next), window);
    // Of a page that is there in part (the end of what a core file holds) nothing is kept.
    const auto piece = into.subspan(done, size);
    const std::size_t got = page ? size : memory_.read(next, piece, window);
    if (page) std::copy_n(page->begin() + static_cast<std::ptrdiff_t>(offset), size, piece.begin());
    done += got;
    if (got < size) break;
  }
  return done;
}

const KeptPages::Page* KeptPages::find(Addr page) const noexcept {
  if (page == last_page_) return last_;
  const auto known = pages_.find(page);
  if (known == pages_.end()) return nullptr;
  last_page_ = page;
  return last_ = known->second;
}

std::span<KeptPages::Page> KeptPages::room(std::size_t count) const {
  static_assert(k_in_block % k_at_once == 0);
  if (k_in_block - used_ % k_in_block < count) used_ += k_in_block - used_ % k_in_block;
  if (used_ == blocks_.size() * k_in_block) {
    Block block(k_in_block * sizeof(Page));
    if (block.empty()) throw std::bad_alloc();
    blocks_.push_back(std::move(block));
  }
  auto* const pages = reinterpret_cast<Page*>(blocks_[used_ / k_in_block].bytes().data());
  return {pages + used_ % k_in_block, count};
}

const KeptPages::Page* KeptPages::fetch(Addr page, MemoryWindow& window) const noexcept try {
  if (used_ + 2 * k_at_once > k_most) return nullptr;
  const std::size_t most = pages_.contains(page - k_page_size) ? k_at_once : k_first;
  std::size_t count = 1;
  while (count < most && page + count * k_page_size > page && !pages_.contains(page + count * k_page_size)) ++count;
  const std::span<Page> pages = room(count);
  const std::size_t whole = memory_.read(page, std::as_writable_bytes(pages), window) / k_page_size;
  for (std::size_t i = 0; i < whole; ++i) {
    pages_.emplace(page + i * k_page_size, &pages[i]);
    ++used_;
  }
  return whole == 0 ? nullptr : find(page);
} catch (const std::bad_alloc&) {
  return nullptr;
}

bool KeptPages::write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept {
  const bool written = memory_.write(at, from, window);
  forget();
  return written;
}

void KeptPages::forget() const noexcept {
  pages_.clear();
  used_ = 0;
  last_page_ = 1;
  last_ = nullptr;
}

/// Their room is not used again before everything is forgotten.
void KeptPages::forget(AddrRange range) const noexcept {
  if (used_ > k_most / 2 || range.end - range.begin > k_at_once * k_page_size) return forget();
  for (Addr page = page_of(range.begin); page < range.end && page >= page_of(range.begin); page += k_page_size)
    pages_.erase(page);
  last_page_ = 1;
  last_ = nullptr;
}

}  // namespace jitunwind
