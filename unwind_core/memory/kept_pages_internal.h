// Pages of a target's memory, kept as long as the target is stopped.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// Wraps a memory whose reads are expensive. It is read by pages, and each page once. A single page is read when its
/// neighbours are unknown; 4 and then 16 pages are read at once when reading continues, as it does on stacks. Large
/// reads pass through, because their callers keep the bytes. Call forget() before the target runs or anything else
/// changes it. One thread at a time may use this object. Pages beyond 64 MiB are not kept.
class KeptPages final : public Memory {
 public:
  explicit KeptPages(const Memory& memory) noexcept : memory_(memory) {}
  ~KeptPages();
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;

  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  bool tells_executable() const noexcept override { return memory_.tells_executable(); }
  std::optional<bool> is_executable(Addr at, MemoryWindow& window) const noexcept override {
    return memory_.is_executable(at, window);
  }
  /// Reads `count` pages from there on at once, as far as they can be read.
  void keep(Addr page, std::size_t count, MemoryWindow& window) const noexcept;
  /// Writes through, and forgets all pages.
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;
  void forget() const noexcept;
  /// Forgets the pages of this range, or all.
  void forget(AddrRange range) const noexcept;

 private:
  using Page = std::array<std::byte, k_page_size>;
  static constexpr std::size_t k_few = 4, k_at_once = 16, k_in_block = 32, k_most = 16384;
  static constexpr std::size_t k_large = k_few * k_page_size;

  const Page* find(Addr page) const noexcept;
  const Page* fetch(Addr page, MemoryWindow& window) const noexcept;
  /// Returns room for `count` adjacent pages.
  std::span<Page> room(std::size_t count) const;

  const Memory& memory_;
  mutable std::unordered_map<Addr, Page*> pages_;
  mutable std::vector<Block> blocks_;
  mutable std::size_t used_ = 0;
  mutable Addr last_page_ = 1;  // the address of no page
  mutable const Page* last_ = nullptr;
};

}  // namespace jitunwind
