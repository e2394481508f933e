// Pages of a target's memory, kept for as long as the target stands still.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// Another memory of which each read is dear, read by pages, and each page once: 1 where nothing is known beside it, 4
/// and then 16 at once where reading goes on, as it does on stacks. Large reads go through: who makes them keeps what
/// is read. forget() before the target runs, or whatever else changes it. Used by one thread at a time. Bounded: what
/// is read beyond 64 MiB is not kept.
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
  /// Reads so many pages from there on, as far as they can be read, at once.
  void keep(Addr page, std::size_t count, MemoryWindow& window) const noexcept;
  /// What is written is forgotten.
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;
  void forget() const noexcept;
  /// Only what was read there.
  void forget(AddrRange range) const noexcept;

 private:
  using Page = std::array<std::byte, k_page_size>;
  static constexpr std::size_t k_few = 4, k_at_once = 16, k_in_block = 32, k_most = 16384;
  static constexpr std::size_t k_large = k_few * k_page_size;

  const Page* find(Addr page) const noexcept;
  const Page* fetch(Addr page, MemoryWindow& window) const noexcept;
  /// For `count` pages, one behind the other.
  std::span<Page> room(std::size_t count) const;

  const Memory& memory_;
  mutable std::unordered_map<Addr, Page*> pages_;
  mutable std::vector<Block> blocks_;
  mutable std::size_t used_ = 0;
  mutable Addr last_page_ = 1;  // no page's
  mutable const Page* last_ = nullptr;
};

}  // namespace jitunwind
