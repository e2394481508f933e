// 32-bit x86 procedures that replace each other: void* procedure(void* (*f)(void*), void* argument). The frame has
// `room` bytes, or a frame pointer if `room` is 0. All have their return address at the same place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame_code.h"

namespace jitunwind::test {

struct ChurnCode {
  static constexpr std::size_t k_after_call = 15;
  using Bytes = std::array<std::uint8_t, 20>;

  static Bytes code_with(std::uint8_t room) {
    if (room == 0)
      return {
          0x55,              // push ebp
          0x89, 0xe5,        // mov ebp, esp
          0x83, 0xec, 0x18,  // sub esp, 24
          0x8b, 0x45, 0x0c,  // mov eax, [ebp + 12]
          0x89, 0x04, 0x24,  // mov [esp], eax
          0xff, 0x55, 0x08,  // call [ebp + 8]
          0x89, 0xec,        // mov esp, ebp
          0x90,              // nop
          0x5d,              // pop ebp
          0xc3,              // ret
      };
    const auto below_argument = static_cast<std::uint8_t>(room + 4), whole = static_cast<std::uint8_t>(room + 8);
    return {
        0x53,                              // push ebx
        0x8b, 0x44, 0x24,           0x08,  // mov eax, [esp + 8]
        0x8b, 0x4c, 0x24,           0x0c,  // mov ecx, [esp + 12]
        0x83, 0xec, below_argument,        // sub esp, room + 4
        0x51,                              // push ecx
        0xff, 0xd0,                        // call eax
        0x83, 0xc4, whole,                 // add esp, room + 8
        0x5b,                              // pop ebx
        0xc3,                              // ret
    };
  }

  static Description description_with(std::uint8_t room) {
    using namespace host;
    if (room == 0) {
      return describe("by_frame_pointer")
          .row_at(0, "cfa=esp+4 ra=[cfa-4]")
          .row_at(1, "cfa=esp+8 ebp=[cfa-8] ra=[cfa-4]")
          .row_at(3, "cfa=ebp+8 ebp=[cfa-8] ra=[cfa-4]")
          .row_at(19, "cfa=esp+4 ra=[cfa-4]")
          .build()
          .value();
    }
    return describe("by_stack_pointer")
        .push({0, 1}, ebx)
        .allocate({9, 12}, room + 4)
        .allocate({12, 13}, 4)
        .deallocate({15, 18}, room + 8)
        .pop({18, 19}, ebx)
        .build()
        .value();
  }

  /// Must run before code that another thread may have written; this CPU needs nothing.
  static void expect_new_code() {}
};

}  // namespace jitunwind::test
