// AArch64 code with a frame of any size: void procedure(void (*f)(void* f, void* argument), void* argument). It passes
// its arguments on to f. A slot has 16 bytes; the frame has 1 to 31 slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "frame_code.h"

namespace jitunwind::test {

struct SlotsCode {
  explicit SlotsCode(std::size_t slots) : bytes(16) {
    const auto words = static_cast<std::uint32_t>(2 * slots);
    const std::uint32_t code[] = {
        0xa9807bfd | ((128 - words) & 127) << 15,  // stp x29, x30, [sp, #-16 * slots]!
        0xd63f0000,                                // blr x0
        0xa8c07bfd | words << 15,                  // ldp x29, x30, [sp], #16 * slots
        0xd65f03c0,                                // ret
    };
    std::memcpy(bytes.data(), code, sizeof code);
  }
  static host::Builder described(std::size_t slots, const char* name) {
    const std::string size = std::to_string(16 * slots), second = std::to_string(16 * slots - 8);
    auto builder = host::describe(name);
    builder.row_at(0, "cfa=sp").row_at(4, "cfa=sp+" + size + " x29=[cfa-" + size + "] ra=[cfa-" + second + "]");
    builder.row_at(12, "cfa=sp");
    return builder;
  }

  std::vector<std::uint8_t> bytes;
  std::size_t after_call = 8;
};

}  // namespace jitunwind::test
