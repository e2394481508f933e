#include "jitunwind/unwind_core/memory/kept_pages_internal.h"

#include <algorithm>
#include <new>

#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"

namespace jitunwind {
namespace {

/// Keeps the first block of a former target for the next one: making new memory takes as long as reading all of it.
constinit SpareBlocks spare_pages;

}  // namespace

KeptPages::~KeptPages() {
  if (!blocks_.empty()) spare_pages.give(std::move(blocks_.front()));
}

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
    // A page that can be read only in part (at the end of a core file's memory) is not kept.
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
  static_assert(k_in_block >= k_at_once);
  if (k_in_block - used_ % k_in_block < count) used_ += k_in_block - used_ % k_in_block;
  if (used_ == blocks_.size() * k_in_block) {
    constexpr std::size_t k_size = k_in_block * sizeof(Page);
    Block block = blocks_.empty() ? spare_pages.take(k_size) : Block();
    if (block.empty()) block = Block::whole(k_size);
    if (block.empty()) throw std::bad_alloc();
    blocks_.push_back(std::move(block));
  }
  auto* const pages = reinterpret_cast<Page*>(blocks_[used_ / k_in_block].bytes().data());
  return {pages + used_ % k_in_block, count};
}

/// The page is read together with its neighbours. The page is read alone when neither neighbour is known. A few pages
/// are read when reading has begun to continue from a known one, and many when it goes on and on, as on stacks. Reading
/// may also go backwards, as in a list whose newest member is the first.
const KeptPages::Page* KeptPages::fetch(Addr page, MemoryWindow& window) const noexcept {
  const auto is_known = [&](std::size_t distance, bool is_before) {
    const Addr by = distance * k_page_size;
    return pages_.contains(is_before ? page - by : page + by);
  };
  const bool goes_back = !is_known(1, true) && is_known(1, false);
  const std::size_t most = !is_known(1, !goes_back) ? 1 : !is_known(k_few, !goes_back) ? k_few : k_at_once;
  const Addr room = goes_back ? page : Addr{0} - k_page_size - page;
  std::size_t count = 1;
  while (count < most && count * k_page_size <= room && !is_known(count, goes_back)) ++count;
  if (!goes_back) keep(page, count, window);
  // The first pages of the part before it may be missing.
  for (; goes_back && count != 0 && !pages_.contains(page); count /= 2)
    keep(page - (count - 1) * k_page_size, count, window);
  return find(page);
}

void KeptPages::keep(Addr page, std::size_t count, MemoryWindow& window) const noexcept try {
  while (count != 0 && used_ + 2 * k_in_block <= k_most) {
    const std::span<Page> pages = room(std::min(count, k_in_block));
    const std::size_t whole = memory_.read(page, std::as_writable_bytes(pages), window) / k_page_size;
    for (std::size_t i = 0; i < whole; ++i) pages_.emplace(page + i * k_page_size, &pages[i]);
    used_ += whole;
    if (whole < pages.size()) return;
    page += whole * k_page_size;
    count -= whole;
  }
} catch (const std::bad_alloc&) {
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

/// The room of these pages is not reused before everything is forgotten.
void KeptPages::forget(AddrRange range) const noexcept {
  if (used_ > k_most / 2 || range.end - range.begin > k_at_once * k_page_size) return forget();
  for (Addr page = page_of(range.begin); page < range.end && page >= page_of(range.begin); page += k_page_size)
    pages_.erase(page);
  last_page_ = 1;
  last_ = nullptr;
}

}  // namespace jitunwind
