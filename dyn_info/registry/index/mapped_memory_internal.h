// Zeroed memory straight from the kernel. It is usable where a thread that does not run may hold malloc's lock. It is
// never given back, so that it is safe to look at for ever.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jitunwind {

inline constexpr std::size_t k_huge_page = std::size_t{2} << 20;

/// `huge` asks for huge pages if the size is a multiple of k_huge_page, for memory that is accessed in random order.
/// `single` forbids huge pages, for memory that is given back page by page; such multiples are aligned all the same.
/// `small` is for memory that is touched here and there, if at all, and then soon.
enum class Pages : std::uint8_t { huge, single, small };

/// Returns null if there is no memory. Signal-safe. Untouched pages cost address space only.
inline void* map_zeroed(std::size_t bytes, Pages pages = Pages::huge) noexcept {
  constexpr int k_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const bool aligned = pages != Pages::small && bytes % k_huge_page == 0;
  const std::size_t mapped = bytes + (aligned ? k_huge_page : 0);
  void* at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, k_flags, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(at);
  if (aligned) {
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(at) % k_huge_page;
    if (before != 0) munmap(begin, before);
    begin += before;
    munmap(begin + bytes, k_huge_page - before);
  }
  if (pages == Pages::single) madvise(begin, bytes, MADV_NOHUGEPAGE);
  if (aligned && pages == Pages::huge) madvise(begin, bytes, MADV_HUGEPAGE);
  return begin;
}

/// An array that grows by blocks of doubling size and whose elements never move. Zero bytes must be a valid T.
template <class T, unsigned k_first_bits, unsigned k_blocks, Pages k_pages = Pages::huge>
class GrowingArray {
 public:
  static constexpr std::uint64_t k_first_size = std::uint64_t{1} << k_first_bits;
  static constexpr std::uint64_t k_capacity = (k_first_size << k_blocks) - k_first_size;

  constexpr GrowingArray() noexcept = default;
  /// `first` has k_first_size elements.
  constexpr explicit GrowingArray(T* first) noexcept : blocks_{first} {}

  /// Precondition: make(i) has succeeded, and happens before this call.
  T& operator[](std::uint64_t i) const noexcept {
    const std::uint64_t numbered = i + k_first_size;
    const unsigned top = top_bit(numbered);
    return blocks_[top - k_first_bits].load(std::memory_order_acquire)[numbered ^ std::uint64_t{1} << top];
  }

  /// Returns false if there is no memory or i >= k_capacity. Thread-safe, signal-safe.
  bool make(std::uint64_t i) noexcept { return i < k_capacity && make_block(block_of(i)); }
  /// Makes all elements up to this one.
  bool make_up_to(std::uint64_t i) noexcept {
    if (i >= k_capacity) return false;
    for (unsigned block = 0; block <= block_of(i); ++block) {
      if (!make_block(block)) return false;
    }
    return true;
  }
  /// Returns the first element of the block behind that of `i`. Elements of one block are contiguous.
  static constexpr std::uint64_t next_block(std::uint64_t i) noexcept {
    return (k_first_size << (block_of(i) + 1)) - k_first_size;
  }

 private:
  bool make_block(unsigned block) noexcept {
    std::atomic<T*>& place = blocks_[block];
    if (place.load(std::memory_order_acquire) != nullptr) return true;
    const std::uint64_t needed = (k_first_size << block) * sizeof(T);
    const auto bytes = static_cast<std::size_t>(needed);
    if (bytes != needed) return false;
    auto* fresh = static_cast<T*>(map_zeroed(bytes, k_pages));
    if (fresh == nullptr) return place.load(std::memory_order_acquire) != nullptr;
    T* expected = nullptr;
    if (!place.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) munmap(fresh, bytes);
    return true;
  }

  /// This is one instruction. Compilers make more of std::bit_width(), which is defined for 0 as well.
  static constexpr unsigned top_bit(std::uint64_t number) noexcept {
    return 63u ^ static_cast<unsigned>(__builtin_clzll(number));
  }
  static constexpr unsigned block_of(std::uint64_t i) noexcept { return top_bit(i + k_first_size) - k_first_bits; }

  std::array<std::atomic<T*>, k_blocks> blocks_{};
};

}  // namespace jitunwind
