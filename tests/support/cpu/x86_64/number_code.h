// unsigned function(), which returns a number that can be changed while threads run it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace jitunwind::test {

struct NumberCode {
  static constexpr std::uint8_t k_bytes[] = {
      0x90, 0x90, 0x90,              // nop: the number is aligned
      0xb8, 0x00, 0x00, 0x00, 0x00,  // mov eax, 0
      0xc3,                          // ret
  };
  static void patch(std::byte* code, unsigned number) {
    std::atomic_ref(*reinterpret_cast<unsigned*>(code + 4)).store(number);
  }
};

}  // namespace jitunwind::test
