// A pool for the FDEs of procedures that are announced to an unwinder one by one: many in one block, each at a fixed
// address until it is given back.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace jitunwind {

class FramePool {
 public:
  /// Takes at least `size` bytes, aligned to 16.
  std::byte* take(std::size_t size);
  /// `size` is the argument of take().
  void give_back(std::byte* block, std::size_t size) noexcept;

 private:
  static constexpr std::size_t k_unit = 16;
  static constexpr std::size_t k_largest = 1024;  ///< larger blocks have memory of their own
  static constexpr std::size_t k_chunk = 16 * k_largest;

  struct Free {
    Free* next;
  };
  std::array<Free*, k_largest / k_unit + 1> free_{};  // by size in units
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace jitunwind
