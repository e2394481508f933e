// Procedures of x86-64 that take each other's place: void* procedure(void* (*f)(void*), void* argument), whose frame is
// made with `room` bytes, or has a frame pointer where room is 0. Return addresses are at one place.
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

  /// In front of code that another thread may have written.
  static void expect_new_code() {}
};

}  // namespace jitunwind::test
