// Strings that an environment hands out. It has 4 KiB of its own, and takes more from the client's allocator if needed.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include <uwx.h>

namespace jitunwind::uwx {

/// The client's allocator at the time when its user was made.
struct Allocator {
  alloc_cb allocate;
  free_cb release;
};
Allocator current_allocator() noexcept;

class StringPool {
 public:
  explicit StringPool(const Allocator& allocator) noexcept : allocator_(allocator) {}
  ~StringPool() { clear(); }
  StringPool(const StringPool&) = delete;
  StringPool& operator=(const StringPool&) = delete;

  /// Room for `size` bytes; empty: there is no memory. It exists until clear().
  std::span<char> room(std::size_t size) noexcept;
  /// A NUL-terminated copy; null: no memory.
  char* keep(std::string_view text) noexcept;
  /// A copy of a string in this process that ends by a NUL, after 64 KiB, or at unreadable memory; null: no memory.
  char* keep(const void* text) noexcept;
  void clear() noexcept;

 private:
  struct Block {
    Block* next;
  };

  const Allocator& allocator_;
  Block* more_ = nullptr;
  std::size_t used_ = 0;
  std::array<char, 4096> first_;
};

}  // namespace jitunwind::uwx
