// Code whose CFA is in a register that calls need not preserve, but that its callee does not change.
#include <gtest/gtest.h>

#include "tests/fallback/stepped_walks.h"
#include "tests/support/fake_space.h"

extern "C" long scratch_base(long value);

namespace jitunwind::test {
namespace {

volatile long g_sum = 0;

// covers: LU10
TEST(ScratchBase, HasAllCallersAtEveryInstructionOfWhatItCalls) {
  expect_right("scratch base",
               [] {
                 for (long n = 0; n < 40; ++n) g_sum = g_sum + scratch_base(n);
               },
               {1});
  EXPECT_EQ(scratch_base(41), 42);
}

/// A frame that does not change rax, in front of a frame whose rule needs rax.
struct ThreeFrames {
  FakeSpace fake{arch::x86_64};
  explicit ThreeFrames(const char* callee, const char* caller) {
    fake.rows.add({0x1000, 0x1100}, callee);
    fake.rows.add({0x2000, 0x2100}, caller);
    fake.rows.add({0x3000, 0x3100}, "cfa=rsp+8 ra=undefined");
    fake.memory.put(0x8000, 0x2010);
    fake.memory.put(0x9000, 77);
    fake.memory.put(0x9008, 0x3010);
  }
};

// covers: RG03
TEST(ScratchBase, IsAValueForRulesAlone) {
  for (const char* caller : {"cfa=rax+16 rbx=[cfa-16] ra=[cfa-8]", "cfa=expr(7010) rbx=[cfa-16] ra=[cfa-8]",
                             "cfa=rsp+4104 rbx=[rax] ra=[cfa-8]"}) {
    SCOPED_TRACE(caller);
    ThreeFrames frames("cfa=rsp+8 ra=[cfa-8]", caller);
    Cursor cursor = frames.fake.cursor(0x1010, 0x8000, {{"rax", 0x9000}});
    ASSERT_TRUE(*cursor.step());
    const auto rax = cursor.get(0);
    ASSERT_FALSE(rax);
    EXPECT_EQ(rax.error().code, ErrorCode::undefined_register);
    const auto moved = cursor.step();
    ASSERT_TRUE(moved) << moved.error().what;
    EXPECT_EQ(cursor.pc(), 0x3010u);
    EXPECT_EQ(*cursor.get(3), 77u);
  }
}

TEST(ScratchBase, HasNoValueWhereTheCalleeSaysSo) {
  ThreeFrames frames("cfa=rsp+8 ra=[cfa-8] rax=undefined", "cfa=rax+16 ra=[cfa-8]");
  Cursor cursor = frames.fake.cursor(0x1010, 0x8000, {{"rax", 0x9000}});
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.step().error(), (Error{ErrorCode::undefined_register, 0, ""}));
}

TEST(ScratchBase, HasNoValueWhereTheWalkBeginsWithoutOne) {
  ThreeFrames frames("cfa=rsp+8 ra=[cfa-8]", "cfa=rax+16 ra=[cfa-8]");
  Cursor cursor = frames.fake.cursor(0x1010, 0x8000);
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.step().error(), (Error{ErrorCode::undefined_register, 0, ""}));
}

}  // namespace
}  // namespace jitunwind::test
