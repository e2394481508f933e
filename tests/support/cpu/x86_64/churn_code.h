// x86-64 procedures that replace each other: void* procedure(void* (*f)(void*), void* argument). The frame has `room`
// bytes, or a frame pointer if `room` is 0. All have their return address at the same place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame_code.h"

namespace jitunwind::test {

struct ChurnCode {
  static constexpr std::size_t k_after_call = 13;
  using Bytes = std::array<std::uint8_t, 19>;

  static Bytes code_with(std::uint8_t room) {
    if (room == 0)
      return {0x55, 0x48, 0x89, 0xe5, 0x90, 0x48, 0x89, 0xf8, 0x48, 0x89,
              0xf7, 0xff, 0xd0, 0x48, 0x89, 0xec, 0x90, 0x5d, 0xc3};
    return {0x53, 0x48, 0x83, 0xec, room, 0x48, 0x89, 0xf8, 0x48, 0x89,
            0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, room, 0x5b, 0xc3};
  }

  static Description description_with(std::uint8_t room) {
    using namespace host;
    if (room == 0) {
      return describe("by_frame_pointer")
          .row_at(0, "cfa=rsp+8 ra=[cfa-8]")
          .row_at(1, "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]")
          .row_at(4, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]")
          .row_at(18, "cfa=rsp+8 ra=[cfa-8]")
          .build()
          .value();
    }
    return describe("by_stack_pointer")
        .push({0, 1}, rbx)
        .allocate({1, 5}, room)
        .deallocate({13, 17}, room)
        .pop({17, 18}, rbx)
        .build()
        .value();
  }

  /// Must run before code that another thread may have written; this CPU needs nothing.
  static void expect_new_code() {}
};

}  // namespace jitunwind::test
