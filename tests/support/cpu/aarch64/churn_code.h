// AArch64 procedures that replace each other: void* procedure(void* (*f)(void*), void* argument). The frame has `room`
// bytes, or a frame pointer if `room` is 0. All have their return address at the same place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "frame_code.h"

namespace jitunwind::test {

struct ChurnCode {
  static constexpr std::size_t k_after_call = 20;
  using Bytes = std::array<std::uint32_t, 9>;

  static Bytes code_with(std::uint8_t room) {
    if (room == 0)
      return {
          0xa9bf7bfd,  // stp x29, x30, [sp, #-16]!
          0x910003fd,  // mov x29, sp
          0xaa0003e9,  // mov x9, x0
          0xaa0103e0,  // mov x0, x1
          0xd63f0120,  // blr x9
          0x910003bf,  // mov sp, x29
          0xa8c17bfd,  // ldp x29, x30, [sp], #16
          0xd503201f,  // nop
          0xd65f03c0,  // ret
      };
    const std::uint32_t bytes = std::uint32_t{room} << 10;
    return {
        0xa9bf4ffe,          // stp x30, x19, [sp, #-16]!
        0xd10003ff | bytes,  // sub sp, sp, #room
        0xaa0003e9,          // mov x9, x0
        0xaa0103e0,          // mov x0, x1
        0xd63f0120,          // blr x9
        0x910003ff | bytes,  // add sp, sp, #room
        0xa8c14ffe,          // ldp x30, x19, [sp], #16
        0xd503201f,          // nop
        0xd65f03c0,          // ret
    };
  }

  static Description description_with(std::uint8_t room) {
    using namespace host;
    if (room == 0) {
      return describe("by_frame_pointer")
          .row_at(0, "cfa=sp")
          .row_at(4, "cfa=sp+16 x29=[cfa-16] ra=[cfa-8]")
          .row_at(8, "cfa=x29+16 x29=[cfa-16] ra=[cfa-8]")
          .row_at(28, "cfa=sp")
          .build()
          .value();
    }
    return describe("by_stack_pointer")
        .store_pair_pre({0, 4}, x30, x19, -16)
        .allocate({4, 8}, room)
        .deallocate({20, 24}, room)
        .load_pair_post({24, 28}, x30, x19, 16)
        .build()
        .value();
  }

  /// Must run before code that another thread may have written (Arm ARM, B2.4.4).
  static void expect_new_code() { asm volatile("isb" ::: "memory"); }
};

}  // namespace jitunwind::test
