// Memory of a target of which somebody has a few pieces: a sample's stack.
#pragma once

#include <vector>

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes of this process that were copied from a target. What is not among them cannot be read. Thread-safe.
class BytesMemory final : public Memory {
 public:
  /// Bytes, and the address of the first one.
  struct Piece {
    Addr address = 0;
    std::span<const std::byte> bytes{};
  };
  /// The bytes must outlive this. Of pieces that overlap the first has what both have.
  explicit BytesMemory(std::vector<Piece> pieces) noexcept : pieces_(std::move(pieces)) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
