// Counts what a resume pops from the shadow stack; the test needs no CPU with a shadow stack.
#include <gtest/gtest.h>

#include "jitunwind/unwind_core/walk/resume.h"
#include "tests/support/fake_space.h"

namespace jitunwind {
namespace {

using test::FakeSpace;

/// f calls itself: frames of 16 bytes with one pc; then a signal frame, then two more frames.
struct Stack : FakeSpace {
  Stack() : FakeSpace(arch::x86_64) {
    rows.add({0x1000, 0x1100}, "cfa=rsp+16 ra=[cfa-8]");
    rows.add({0x2fff, 0x3009}, "cfa=[rsp+160]+0 rsp=[rsp+160] ra=[rsp+168] signal");
    for (Addr sp = 0x8000; sp < 0x8050; sp += 16) memory.put(sp + 8, 0x1010);
    memory.put(0x8048, 0x3000);  // the handler returns to the trampoline at SP 0x8050
    memory.put(0x8050 + 160, 0x9000);
    memory.put(0x8050 + 168, 0x1020);
    memory.put(0x9008, 0x1010);
    memory.put(0x9018, 0);
  }
};

std::uint64_t entries(const Stack& stack, Addr sp) {
  const auto counted = shadow_stack_entries(stack.cursor(0x1010, 0x8000, {}, Cursor::Top::returned_to), sp);
  return counted ? *counted : ~std::uint64_t{0};
}

// covers: RS09
TEST(ShadowStack, CountsReturnAddressesAndSignalFrames) {
  const Stack stack;
  EXPECT_EQ(entries(stack, 0x8000), 0u);
  EXPECT_EQ(entries(stack, 0x8010), 1u);
  EXPECT_EQ(entries(stack, 0x8040), 4u) << "one pc in many frames: they are told apart by SP";
  EXPECT_EQ(entries(stack, 0x8050), 5u) << "the trampoline";
  EXPECT_EQ(entries(stack, 0x9000), 6u) << "the kernel's entry is one more";
  EXPECT_EQ(entries(stack, 0x9010), 7u);
  EXPECT_EQ(entries(stack, 0x8048), ~std::uint64_t{0}) << "no frame has this SP";
  EXPECT_EQ(entries(stack, 0xa000), ~std::uint64_t{0});
}

/// Pops as the loop of the assembly file does.
std::uint64_t popped_in_all(std::uint64_t left, std::uint64_t& instructions) {
  std::uint64_t popped = 0;
  for (instructions = 0; left != 0; ++instructions) {
    const std::uint64_t now = next_shadow_stack_pop(left);
    EXPECT_LE(now, 255u);
    popped += now & 0xff;
    left -= now;
  }
  return popped;
}

// covers: RS09
TEST(ShadowStack, OneInstructionTakesAtMost255) {
  std::uint64_t instructions = 0;
  for (const std::uint64_t n : {0u, 1u, 254u, 255u, 256u, 257u, 510u, 511u, 65536u})
    EXPECT_EQ(popped_in_all(n, instructions), n);
  EXPECT_EQ(popped_in_all(256, instructions), 256u);
  EXPECT_EQ(instructions, 2u);
}

}  // namespace
}  // namespace jitunwind
