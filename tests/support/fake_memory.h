// A target's memory made of bytes in a map; everything else is unreadable.
#pragma once

#include <cstdint>
#include <map>

#include "jitunwind/unwind_core/memory/memory.h"

namespace jitunwind::test {

class FakeMemory : public Memory {
 public:
  explicit FakeMemory(bool big_endian = false) : big_endian_(big_endian) {}

  void put(Addr at, std::uint64_t value, unsigned size = 8) {
    for (unsigned i = 0; i < size; ++i) {
      const unsigned from = big_endian_ ? size - 1 - i : i;
      bytes_[at + i] = static_cast<std::byte>(value >> (8 * from));
    }
  }
  void put_bytes(Addr at, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[at + i] = bytes[i];
  }

  void forget(Addr at, Addr size) { bytes_.erase(bytes_.lower_bound(at), bytes_.lower_bound(at + size)); }

  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    std::size_t n = 0;
    for (; n < into.size(); ++n) {
      const auto it = bytes_.find(at + n);
      if (it == bytes_.end()) break;
      into[n] = it->second;
    }
    return n;
  }

 private:
  bool big_endian_;
  std::map<Addr, std::byte> bytes_;
};

}  // namespace jitunwind::test
