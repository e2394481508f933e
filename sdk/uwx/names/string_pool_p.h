// Strings that an environment hands out: 4 KiB of its own, and more from the client's allocator where that is not
// enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <uwx.h>

namespace jitunwind::uwx {

/// The client's, as it was when the object that has it was made.
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

  /// Room for `size` bytes, empty where there is no memory. Stays until clear().
  std::span<char> room(std::size_t size) noexcept;
  /// A NUL-terminated copy; null: no memory.
  char* keep(std::string_view text) noexcept;
  /// The same of a string in this process that ends by a NUL, or after 64 KiB, or where it cannot be read.
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
