// What fuzz targets share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind::fuzz {

/// A finding: libFuzzer keeps the input of a program that aborts.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The input itself, at one address.
class InputMemory final : public Memory {
 public:
  InputMemory(std::span<const std::byte> bytes, Addr at) : bytes_(bytes), at_(at) {}
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

}  // namespace jitunwind::fuzz
