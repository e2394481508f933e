// Memory of a target of which only a few pieces are known, such as the stack of a sample.
#pragma once

#include <vector>

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes that were copied from a target into this process. Other addresses cannot be read. Thread-safe.
class BytesMemory final : public Memory {
 public:
  /// Bytes and the target's address of the first one.
  struct Piece {
    Addr address = 0;
    std::span<const std::byte> bytes{};
  };
  /// The bytes must outlive this object. When pieces overlap, the first one provides the bytes that both have.
  explicit BytesMemory(std::vector<Piece> pieces) noexcept : pieces_(std::move(pieces)) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  std::vector<Piece> pieces_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
