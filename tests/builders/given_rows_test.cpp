// Rows for frames that directives cannot express, alone and among directives.
#include <gtest/gtest.h>

#include "tests/builders/described.h"

namespace jitunwind {
namespace {

using namespace x86_64;

// gcc's frames with a dynamically realigned argument pointer: CFA = *(rbp-8).
//   lea r10,[rsp+8]; and rsp,-32; push [r10-8]; push rbp; mov rbp,rsp; push r10; .. pop r10; pop rbp; lea rsp,[r10-8];
//   ret
Builder realigned_by_gcc() {
  Builder b = describe();
  b.row_at(5, "cfa=r10 ra=[cfa-8]");
  b.row_at(0x11, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  b.row_at(0x13, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]");
  b.row_at(-7, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  b.row_at(-5, "cfa=r10 ra=[cfa-8]");
  b.row_at(-1, "cfa=rsp+8 ra=[cfa-8]");
  return b;
}

TEST(GivenRows, HoldFromTheirOffsetOn) {
  const auto built = realigned_by_gcc().build();
  ASSERT_TRUE(built);
  EXPECT_TRUE(built->shape().has_rows());
  EXPECT_EQ(built->format(), UNW_INFO_FORMAT_IP_OFFSET);
  EXPECT_EQ(built->min_size(), 0x13u + 7);
  EXPECT_EQ("\n" + built->to_text(0x40), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+5: cfa=r10 ra=[cfa-8]
+11: cfa=r10 rbp=[rbp] ra=[cfa-8]
+13: cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]
+39: cfa=r10 rbp=[rbp] ra=[cfa-8]
+3b: cfa=r10 ra=[cfa-8]
+3f: cfa=rsp+8 ra=[cfa-8]
)");
  EXPECT_EQ(built->row(0x20, 0x40)->range, (AddrRange{0x13, 0x39}));
  EXPECT_EQ(built->row(0x3f, 0x40)->range, (AddrRange{0x3f, 0x40}));
}

TEST(GivenRows, ReplaceWhatDirectivesSayUntilTheySaySomethingNew) {
  // An interpreter that keeps the sender's SP in its frame between two ordinary stretches.
  Builder b = describe().push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx);
  b.row_at(0x10, "cfa=[rbp-16]+8 rbx=[rbp-8] rbp=[rbp] ra=[cfa-8]");
  b.row_at(0x18, "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]");
  b.row_at(-4, "cfa=[rsp]+8 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]");
  b.pop({-3, -2}, rbx).pop({-2, -1}, rbp);
  EXPECT_EQ(rows_of(b, 0x30), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+10: cfa=[rbp-16]+8 rbx=[rbp-8] rbp=[rbp] ra=[cfa-8]
+18: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+2c: cfa=[rsp]+8 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+2e: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
+2f: cfa=rsp+8 ra=[cfa-8]
)");
}

TEST(GivenRows, OfAProcedureOfKnownSizeMayLieAnywhere) {
  Builder b = describe().size(0x20).push({0, 1}, rbx).pop({0x18, 0x19}, rbx);
  b.row_at(0x1c, "cfa=[rax] ra=[cfa-8]").row_at(-2, "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(rows_of(b, 0x20), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
+19: cfa=rsp+8 ra=[cfa-8]
+1c: cfa=[rax] ra=[cfa-8]
+1e: cfa=rsp+8 ra=[cfa-8]
)");
}

TEST(GivenRows, AreCopiedWithTheirExpressions) {
  Builder b = describe();
  {
    std::vector<std::byte> bytes{std::byte{0x77}, std::byte{8}};  // breg7 8
    FrameRow row = entry_row(arch::x86_64);
    row.cfa = CfaRule::of(bytes);
    ASSERT_TRUE(row.set(3, RegRule::at(bytes)) && row.set(12, RegRule::is(bytes)));
    b.row_at(4, row);
    bytes.assign(2, std::byte{0xff});
  }
  const Builder copy = b;
  b.row_at(8, "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(rows_of(copy, 16),
            "\n+0: cfa=rsp+8 ra=[cfa-8]\n+4: cfa=expr(7708) rbx=[expr(7708)] r12=expr(7708) ra=[cfa-8]\n");
}

TEST(GivenRows, ShareShapesByContent) {
  const auto one = realigned_by_gcc().build();
  const auto other = realigned_by_gcc().build();
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->shape(), other->shape());
  const auto with_expression = [](const char* row) { return describe().row_at(4, row).build(); };
  EXPECT_EQ(with_expression("cfa=expr(7708) ra=[cfa-8]")->shape(),
            with_expression("cfa=expr(7708) ra=[cfa-8]")->shape());
  EXPECT_FALSE(with_expression("cfa=expr(7708) ra=[cfa-8]")->shape() ==
               with_expression("cfa=expr(7709) ra=[cfa-8]")->shape());
}

TEST(GivenRows, Refused) {
  const auto text = [](const Builder& b) {
    const auto built = b.build();
    return built ? "built" : built.error().text();
  };
  EXPECT_EQ(text(describe().row_at(4, "cfa=rsp+")),
            "row_at(): INVALID_ARGUMENT: row text \"cfa=rsp+\", character 8: bad CFA rule\n");
  EXPECT_EQ(text(describe().row_at(4, "+4: cfa=rsp+8 ra=[cfa-8]")),
            "row_at(): INVALID_ARGUMENT: the row text has an offset of its own\n");
  EXPECT_EQ(text(describe().row_at(4, "cfa=rsp+8")),
            "row_at(4): INVALID_ARGUMENT: the row does not say where the return address is\n");
  EXPECT_EQ(text(describe().row_at(4, "cfa=none ra=[cfa-8]")), "row_at(4): INVALID_ARGUMENT: a row without CFA\n");
  EXPECT_EQ(text(describe().row_at(4, "cfa=rsp+8 ra=[cfa-8]").row_at(4, "cfa=rsp+16 ra=[cfa-8]")),
            "row_at(4): INVALID_ARGUMENT: more than one row for this offset\n");
  EXPECT_EQ(text(describe().size(4).row_at(4, "cfa=rsp+8 ra=[cfa-8]")),
            "row_at(4): E_RANGE: behind the end of the procedure\n");
  EXPECT_EQ(text(describe().size(4).row_at(-5, "cfa=rsp+8 ra=[cfa-8]")),
            "row_at(-5): E_RANGE: in front of the procedure\n");
  // Call frame information has one return address column a procedure.
  EXPECT_EQ(text(describe().row_at(4, "cfa=rsp+8 ra=[cfa-8] signal")),
            "row_at(4): INVALID_ARGUMENT: row and CIE differ in the return address column or the signal mark\n");
  EXPECT_EQ(codes_of(describe().region(8).alias(0x1000).row_at(4, "cfa=rsp+8 ra=[cfa-8]")), "no_info ");
  EXPECT_EQ(codes_of(describe().region(8).add(1, rbx, 8).row_at(4, "cfa=rsp+8 ra=[cfa-8]")), "e_add_reg ");
  EXPECT_EQ(codes_of(aarch64::describe().row_at(6, "cfa=sp")), "e_range ");
}

}  // namespace
}  // namespace jitunwind
