// Memory that consists of the test's bytes at one address; everything else is unreadable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind::test {

class BytesMemory final : public Memory {
 public:
  BytesMemory(std::span<const std::byte> bytes, Addr at) : bytes_(bytes), at_(at) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    const Addr offset = at - at_;
    if (offset >= bytes_.size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), bytes_.size() - static_cast<std::size_t>(offset));
    std::memcpy(into.data(), bytes_.data() + offset, count);
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
  Addr at_;
};

}  // namespace jitunwind::test
