// x86-64 code with a frame of any size: void procedure(void (*f)(void* f, void* argument), void* argument). It passes
// its arguments on to f. The stack is aligned to 16 if the number of slots is odd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frame_code.h"

namespace jitunwind::test {

struct SlotsCode {
  explicit SlotsCode(std::size_t slots) : after_call(slots + 2) {
    bytes.assign(slots, 0x53);                // push %rbx
    bytes.insert(bytes.end(), {0xff, 0xd7});  // call *%rdi
    bytes.insert(bytes.end(), slots, 0x5b);   // pop %rbx
    bytes.push_back(0xc3);                    // ret
  }
  static host::Builder described(std::size_t slots, const char* name) {
    const auto row_behind = [](std::size_t pushes) {
      const std::string cfa = "cfa=rsp+" + std::to_string(8 + 8 * pushes);
      return cfa + (pushes > 0 ? " rbx=[cfa-16]" : "") + " ra=[cfa-8]";
    };
    auto builder = host::describe(name);
    for (std::size_t i = 0; i <= slots; ++i) builder.row_at(static_cast<std::int64_t>(i), row_behind(i));
    for (std::size_t i = 1; i <= slots; ++i)
      builder.row_at(static_cast<std::int64_t>(slots + 2 + i), row_behind(slots - i));
    return builder;
  }

  std::vector<std::uint8_t> bytes;
  std::size_t after_call;
};

}  // namespace jitunwind::test
