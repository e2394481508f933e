// The worked examples of docs/directives.md: the builder makes the region lists that are printed there, from directives
// and from idioms, and they give the rows that are listed there.
#include <gtest/gtest.h>

#include "tests/builders/described.h"

namespace jitunwind {
namespace {

namespace x64 {
using namespace x86_64;

// Example 1: frame pointer, early return, 44 bytes.
constexpr const char* k_example_1_rows = R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+18: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+19: cfa=rsp+8 ra=[cfa-8]
+1a: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+2a: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+2b: cfa=rsp+8 ra=[cfa-8]
)";
// A register that was popped is read from its old slot, which holds the same value, until SP is restored.
constexpr const char* k_example_1_coarse_rows = R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+19: cfa=rsp+8 ra=[cfa-8]
+1a: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+2b: cfa=rsp+8 ra=[cfa-8]
)";

void prologue_1(Builder& b) {
  b.add(0, rsp, -8).spill_sp_rel(0, rbp, 0).save_reg(3, rsp, rbp);
  b.add(4, rsp, -8).spill_sp_rel(4, rbx, 0).add(8, rsp, -24);
}

// covers: DY37 DY38 DY41 DY55
TEST(WorkedExamples, Example1AsOneRegionA) {
  const char* const regions = R"(
region 44
  ADD rsp,-8 @0
  SPILL_SP_REL rbp,0 @0
  SAVE_REG rsp,rbp @3
  ADD rsp,-8 @4
  SPILL_SP_REL rbx,0 @4
  ADD rsp,-24 @8
  LABEL_STATE 1 @8
  ADD rsp,24 @16
  ADD rsp,8 @17
  ADD rsp,8 @18
  COPY_STATE 1 @19
  ADD rsp,24 @28
  ADD rsp,8 @29
  ADD rsp,8 @2a
)";
  Builder directives = describe().region(0x2c);
  prologue_1(directives);
  directives.label_state(8, 1).add(0x16, rsp, 24).add(0x17, rsp, 8).add(0x18, rsp, 8).copy_state(0x19, 1);
  directives.add(0x28, rsp, 24).add(0x29, rsp, 8).add(0x2a, rsp, 8);
  EXPECT_EQ(regions_of(directives), regions);
  EXPECT_EQ(rows_of(directives, 0x2c), k_example_1_rows);

  Builder idioms = describe().size(0x2c);
  idioms.push({0x00, 0x01}, rbp).set_frame_pointer({0x01, 0x04}, rbp).push({0x04, 0x05}, rbx);
  idioms.allocate({0x05, 0x09}, 24).remember();
  idioms.deallocate({0x13, 0x17}, 24).pop({0x17, 0x18}, rbx).pop({0x18, 0x19}, rbp).restore({0x19, 0x1a});
  idioms.deallocate({0x25, 0x29}, 24).pop({0x29, 0x2a}, rbx).pop({0x2a, 0x2b}, rbp);
  EXPECT_EQ(regions_of(idioms), regions);
}

// covers: DY23 DY38 DY57
TEST(WorkedExamples, Example1AsThreeRegionsB) {
  Builder b = describe().region(0x13);
  prologue_1(b);
  b.stop();
  b.region(7).add(3, rsp, 24).add(4, rsp, 8).pop_frames(5, 1);
  b.region(0x12).add(0xe, rsp, 24).add(0xf, rsp, 8).pop_frames(0x10, 1);
  EXPECT_EQ(regions_of(b), R"(
region 19
  ADD rsp,-8 @0
  SPILL_SP_REL rbp,0 @0
  SAVE_REG rsp,rbp @3
  ADD rsp,-8 @4
  SPILL_SP_REL rbx,0 @4
  ADD rsp,-24 @8
  STOP
region 7
  ADD rsp,24 @3
  ADD rsp,8 @4
  POP_FRAMES 1 @5
region 18
  ADD rsp,24 @e
  ADD rsp,8 @f
  POP_FRAMES 1 @10
)");
  EXPECT_EQ(rows_of(b, 0x2c), k_example_1_rows);

  // Idioms inside regions give the same directives: positions in the procedure become `when`s of the region.
  Builder mixed = describe().region(0x13);
  mixed.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx).allocate({5, 9}, 24).stop();
  mixed.region(7).deallocate({0x13, 0x17}, 24).pop({0x17, 0x18}, rbx).pop_frames(5, 1);
  mixed.region(0x12).deallocate({0x25, 0x29}, 24).pop({0x29, 0x2a}, rbx).pop_frames(0x10, 1);
  EXPECT_EQ(regions_of(mixed), regions_of(b));
}

// covers: DY28
TEST(WorkedExamples, Example1CoarseC) {
  Builder b = describe().region(0x13);
  prologue_1(b);
  b.region(7).pop_frames(5, 1).region(-12).pop_frames(10, 1);
  EXPECT_EQ(rows_of(b, 0x2c), k_example_1_coarse_rows);
}

// covers: DY36
TEST(WorkedExamples, Example1InRandomOrderD) {
  Builder b = describe().region(0x2c);
  b.add(0x29, rsp, 8).spill_sp_rel(4, rbx, 0).copy_state(0x19, 1).add(0, rsp, -8).add(0x17, rsp, 8).add(0x28, rsp, 24);
  b.label_state(8, 1).save_reg(3, rsp, rbp).add(0x18, rsp, 8).add(8, rsp, -24).spill_sp_rel(0, rbp, 0);
  b.add(0x2a, rsp, 8).add(4, rsp, -8).add(0x16, rsp, 24);
  EXPECT_EQ(rows_of(b, 0x2c), k_example_1_rows);
  const auto built = b.build();
  ASSERT_TRUE(built);
  ASSERT_EQ(built->warnings().size(), 1u);
  EXPECT_EQ(built->warnings()[0].code, ErrorCode::w_unsorted);
}

// covers: DY24 DY57
TEST(WorkedExamples, Example1WithLabelsE) {
  Builder b = describe().region(0x13);
  prologue_1(b);
  b.label_state(100402);
  b.region(7).add(3, rsp, 24).add(4, rsp, 8).add(5, rsp, 8);
  b.region(0).copy_state(100402);
  b.region(0x12).add(0xe, rsp, 24).add(0xf, rsp, 8).add(0x10, rsp, 8);
  EXPECT_EQ(rows_of(b, 0x2c), k_example_1_rows);
}

TEST(WorkedExamples, Example1WithTheFirstByteAsWhenF) {
  Builder b = describe().region(0x2c);
  b.add(0, rsp, -8).spill_sp_rel(0, rbp, 0).save_reg(1, rsp, rbp).add(4, rsp, -8).spill_sp_rel(4, rbx, 0);
  b.add(5, rsp, -24).label_state(5, 1).add(0x13, rsp, 24).add(0x17, rsp, 8).add(0x18, rsp, 8).copy_state(0x19, 1);
  b.add(0x25, rsp, 24).add(0x29, rsp, 8).add(0x2a, rsp, 8);
  const auto built = b.build();
  Builder last_byte = describe().region(0x2c);
  prologue_1(last_byte);
  last_byte.label_state(8, 1).add(0x16, rsp, 24).add(0x17, rsp, 8).add(0x18, rsp, 8).copy_state(0x19, 1);
  last_byte.add(0x28, rsp, 24).add(0x29, rsp, 8).add(0x2a, rsp, 8);
  const auto exact = last_byte.build();
  ASSERT_TRUE(built && exact);
  // Rows are compared on the boundaries of instructions only, and are the same there.
  for (const unsigned at : {0x00u, 0x01u, 0x04u, 0x05u, 0x09u, 0x0cu, 0x0fu, 0x11u, 0x13u, 0x17u, 0x18u, 0x19u, 0x1au,
                            0x1du, 0x22u, 0x25u, 0x29u, 0x2au, 0x2bu})
    EXPECT_EQ(to_text(*built->row(at, 0x2c), arch::x86_64), to_text(*exact->row(at, 0x2c), arch::x86_64)) << at;
}

TEST(WorkedExamples, Example2WithoutFramePointer) {
  Builder directives = describe().region(0x18).add(3, rsp, -40).add(0x16, rsp, 40);
  const char* const rows = R"(
+0: cfa=rsp+8 ra=[cfa-8]
+4: cfa=rsp+48 ra=[cfa-8]
+17: cfa=rsp+8 ra=[cfa-8]
)";
  EXPECT_EQ(regions_of(directives), "\nregion 24\n  ADD rsp,-40 @3\n  ADD rsp,40 @16\n");
  EXPECT_EQ(rows_of(directives, 0x18), rows);
  EXPECT_EQ(regions_of(describe().region(0x18).allocate({0, 4}, 40).deallocate({0x13, 0x17}, 40)),
            regions_of(directives));
  EXPECT_EQ(rows_of(describe().size(0x18).allocate({0, 4}, 40).deallocate({0x13, 0x17}, 40), 0x18), rows);
  EXPECT_EQ(rows_of(describe().region(0x18).add(3, rsp, -40).pop_frames(0x16, 1), 0x18), rows);
}

// Example 4: one region list for any body.
// covers: DY25
TEST(WorkedExamples, Example4SharedByProceduresOfAnySize) {
  Builder directives = describe().region(7);
  directives.add(0, rsp, -8).spill_sp_rel(0, rbp, 0).save_reg(3, rsp, rbp).add(4, rsp, -8).spill_sp_rel(4, rbx, 0);
  directives.add(6, rsp, -8).spill_sp_rel(6, r12, 0);
  directives.region(-5).add(1, rsp, 8).add(2, rsp, 8).pop_frames(3, 1);
  EXPECT_EQ(regions_of(directives), R"(
region 7
  ADD rsp,-8 @0
  SPILL_SP_REL rbp,0 @0
  SAVE_REG rsp,rbp @3
  ADD rsp,-8 @4
  SPILL_SP_REL rbx,0 @4
  ADD rsp,-8 @6
  SPILL_SP_REL r12,0 @6
region -5
  ADD rsp,8 @1
  ADD rsp,8 @2
  POP_FRAMES 1 @3
)");

  Builder prologue = describe().push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx).push({5, 7}, r12);
  Builder from_end = prologue;
  from_end.pop({-5, -3}, r12).pop({-3, -2}, rbx).pop({-2, -1}, rbp);
  Builder of_23 = prologue;
  of_23.size(23).pop({18, 20}, r12).pop({20, 21}, rbx).pop({21, 22}, rbp);
  // Positions counted from the start in a procedure of known size give the same shape.
  ASSERT_TRUE(from_end.build() && of_23.build());
  EXPECT_EQ(from_end.build()->shape(), of_23.build()->shape());

  const char* const rows_of_23 = R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+7: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] r12=[cfa-32] ra=[cfa-8]
+14: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+15: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+16: cfa=rsp+8 ra=[cfa-8]
)";
  for (const Builder& b : {directives, from_end, of_23}) EXPECT_EQ(rows_of(b, 23), rows_of_23);
  const auto built = directives.build();
  ASSERT_TRUE(built);
  EXPECT_EQ(to_text(*built->row(24, 29), arch::x86_64), to_text(*built->row(7, 29), arch::x86_64));
  EXPECT_EQ(to_text(*built->row(26, 29), arch::x86_64), "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]");
  EXPECT_TRUE(built->check_size(12));
  EXPECT_EQ(built->check_size(11).error().code, ErrorCode::e_overlap);
}

TEST(WorkedExamples, ColdPartOfExample1) {
  // The procedure is entered with the frame of example 1.
  Builder b = describe().entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 48);
  b.deallocate({5, 9}, 24).pop({9, 10}, rbx).pop({10, 11}, rbp);
  EXPECT_EQ(rows_of(b, 12), R"(
+0: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+a: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+b: cfa=rsp+8 ra=[cfa-8]
)");
}

}  // namespace x64

namespace a64 {
using namespace aarch64;

constexpr const char* k_example_3_rows = R"(
+0: cfa=sp
+4: cfa=sp+32 x29=[cfa-32] ra=[cfa-24]
+8: cfa=x29+32 x29=[cfa-32] ra=[cfa-24]
+c: cfa=x29+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24]
+20: cfa=sp
)";

// covers: DY16 DY22 DY35
TEST(WorkedExamples, Example3OnAArch64) {
  Builder directives = describe().region(9);
  directives.add(0, sp, -32).spill_sp_rel(0, x29, 0).spill_sp_rel(0, x30, 8).save_reg(1, sp, x29);
  directives.spill_sp_rel(2, x19, 16).add(7, sp, 32);
  Builder idioms = describe().region(9);
  idioms.store_pair_pre({0, 4}, x29, x30, -32).set_frame_pointer({4, 8}, x29).save_at_sp({8, 12}, x19, 16);
  idioms.load_pair_post({0x1c, 0x20}, x29, x30, 32);
  EXPECT_EQ(regions_of(directives), R"(
region 9
  ADD sp,-32 @0
  SPILL_SP_REL x29,0 @0
  SPILL_SP_REL x30,8 @0
  SAVE_REG sp,x29 @1
  SPILL_SP_REL x19,16 @2
  ADD sp,32 @7
)");
  EXPECT_EQ(regions_of(idioms), regions_of(directives));
  EXPECT_EQ(rows_of(idioms, 36), k_example_3_rows);

  Builder by_fp = describe().size(36);
  by_fp.store_pair_pre({0, 4}, x29, x30, -32).set_frame_pointer({4, 8}, x29).save_at_fp({8, 12}, x19, 16);
  by_fp.load_pair_post({0x1c, 0x20}, x29, x30, 32);
  EXPECT_EQ(rows_of(by_fp, 36), k_example_3_rows);

  Builder shared = describe().region(3);
  shared.add(0, sp, -32).spill_sp_rel(0, x29, 0).spill_sp_rel(0, x30, 8).save_reg(1, sp, x29).spill_sp_rel(2, x19, 16);
  shared.region(-3).pop_frames(1, 1);
  EXPECT_EQ(rows_of(shared, 36), k_example_3_rows);
}

}  // namespace a64
}  // namespace
}  // namespace jitunwind
