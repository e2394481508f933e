// unsigned function(), which returns a number that can be changed while threads run it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jitunwind::test {

struct NumberCode {
  static constexpr std::uint8_t k_bytes[] = {
      0x40, 0x00, 0x00, 0x18,  // ldr w0, +8
      0xc0, 0x03, 0x5f, 0xd6,  // ret
      0x00, 0x00, 0x00, 0x00,
  };
  static void patch(std::byte* code, unsigned number) {
    std::atomic_ref(*reinterpret_cast<unsigned*>(code + 8)).store(number);
  }
};

}  // namespace jitunwind::test
