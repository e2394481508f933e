// Rows print, parse and compare.
#include "jitunwind/unwind_core/rows/row_text.h"

#include <gtest/gtest.h>

namespace jitunwind {
namespace {

FrameRow parsed(const char* text, const Arch& arch, ExpressionPool& pool) {
  const auto row = parse_row(text, arch, pool);
  EXPECT_TRUE(row) << text << ": " << (row ? "" : row.error().what);
  return row ? row->row : FrameRow{};
}

TEST(RowText, PrintsWhatItParses) {
  const char* const texts[] = {
      "cfa=rsp+8 ra=[cfa-8]",
      "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]",
      "cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]",
      "cfa=rsp ra=rcx",
      "cfa=[rbp-8] rbp=[rbp] r12=same r13=undefined ra=[cfa-8]",
      "cfa=expr(770806) rax=[expr(7708)] rdx=expr(31) rsp=cfa-16 ra=[cfa-8] args=16",
      "cfa=r77+16 r78=[cfa-9223372036854775808] ra=[cfa+9223372036854775807]",
      "cfa=rsp+8 rbx=rbp+0 rbp=[rsp+120] ra=[rsp+168] signal",
      "cfa=none",
  };
  ExpressionPool pool;
  for (const char* text : texts) EXPECT_EQ(to_text(parsed(text, arch::x86_64, pool), arch::x86_64), text);
  EXPECT_EQ(to_text(parsed("cfa=sp+32 x29=[cfa-32] v8=[cfa-16] ra=[cfa-24] ra_sign_state=1", arch::aarch64, pool),
                    arch::aarch64),
            "cfa=sp+32 x29=[cfa-32] v8=[cfa-16] ra=[cfa-24] ra_sign_state=1");
}

TEST(RowText, ReadsHexAnyOrderAndOffset) {
  ExpressionPool pool;
  const auto row = parse_row("+1a: cfa=rbp+0x10   ra=[cfa-8] rbp=[cfa-0x10]", arch::x86_64, pool);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->offset, 0x1au);
  EXPECT_EQ(to_text(*row->offset, row->row, arch::x86_64), "+1a: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
}

TEST(RowText, RefusesWithThePosition) {
  struct Case {
    const char* text;
    Addr position;
  };
  const Case cases[] = {
      {"", 0},
      {"cfa=", 4},
      {"cfa=rzx", 4},
      {"cfa=rsp+", 8},
      {"cfa=rsp+99999999999999999999", 8},
      {"cfa=rsp+-8", 8},
      {"cfa=[rsp", 8},
      {"cfa=rsp rbx", 11},
      {"cfa=rsp rbx=[cfa-8", 18},
      {"cfa=rsp rbx=same rbx=same", 25},
      {"cfa=rsp rbx=[cfa]x", 17},
      {"cfa=rsp rbx=expr(1)", 17},
      {"cfa=rsp args=-1", 13},
      {"+: cfa=rsp", 1},
      {"cfa=r7+8", 4},
  };
  ExpressionPool pool;
  for (const Case& c : cases) {
    const auto row = parse_row(c.text, arch::x86_64, pool);
    ASSERT_FALSE(row) << c.text;
    EXPECT_EQ(row.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(row.error().at, c.position) << c.text << ": " << row.error().what;
  }
}

TEST(RowText, ComparesRulesNotStorage) {
  ExpressionPool one, two;
  const FrameRow a = parsed("cfa=expr(7708) rbx=[expr(7608)] ra=[cfa-8]", arch::x86_64, one);
  EXPECT_EQ(a, parsed("cfa=expr(7708) ra=[cfa-8] rbx=[expr(7608)]", arch::x86_64, two));
  EXPECT_FALSE(a == parsed("cfa=expr(7708) ra=[cfa-8] rbx=[expr(7609)]", arch::x86_64, two));
  EXPECT_FALSE(a == parsed("cfa=expr(7708) ra=[cfa-8] rbx=expr(7608)", arch::x86_64, two));
  EXPECT_FALSE(a == parsed("cfa=expr(7708) ra=[cfa-8]", arch::x86_64, two));
}

TEST(FrameRow, OwnsItsExpressions) {
  const char* const text = "cfa=expr(770806) rax=[expr(7708)] rdx=expr(31) rsp=cfa-16 ra=[cfa-8]";
  FrameRow row, copy;
  {
    ExpressionPool pool;
    row = parsed(text, arch::x86_64, pool);
    ASSERT_TRUE(row.own_expressions());
  }
  EXPECT_EQ(to_text(row, arch::x86_64), text);
  {
    FrameRow first = row;  // a copy's bytes are its own
    copy = first;
    ASSERT_TRUE(first.own_expressions());
    EXPECT_EQ(to_text(first, arch::x86_64), text);
    EXPECT_TRUE(first.set(0, RegRule::same()));
  }
  EXPECT_EQ(to_text(copy, arch::x86_64), text);
  EXPECT_EQ(copy, row);
}

TEST(FrameRow, RefusesToOwnTooMuch) {
  const std::vector<std::byte> fits(FrameRow::k_max_owned_bytes), one(1);
  FrameRow row;
  row.cfa = CfaRule::of(fits);
  EXPECT_TRUE(row.own_expressions());
  ASSERT_TRUE(row.set(3, RegRule::at(Expression(one))));
  EXPECT_FALSE(row.own_expressions());
  EXPECT_EQ(row.cfa.expression.size(), fits.size());
  EXPECT_EQ(row.rule(3).expression().data(), one.data());
  const FrameRow copy = row;  // some bytes its own, others not
  EXPECT_EQ(copy, row);
  EXPECT_NE(copy.cfa.expression.data(), row.cfa.expression.data());
  EXPECT_EQ(copy.rule(3).expression().data(), one.data());
}

TEST(FrameRow, HoldsFortyRulesInOrder) {
  FrameRow row;
  for (unsigned i = FrameRow::k_max_rules; i-- > 0;)
    ASSERT_TRUE(row.set(static_cast<RegNum>(i), RegRule::at_cfa(-8 * static_cast<int>(i))));
  EXPECT_FALSE(row.set(100, RegRule::same()));
  EXPECT_TRUE(row.set(3, RegRule::same()));
  EXPECT_EQ(row.entries().size(), FrameRow::k_max_rules);
  for (unsigned i = 0; i < FrameRow::k_max_rules; ++i) EXPECT_EQ(row.entries()[i].reg, i);
  EXPECT_TRUE(row.set(0, RegRule{}));
  EXPECT_EQ(row.entries().front().reg, 1);
  EXPECT_EQ(row.rule(0).kind, RegRule::Kind::unspecified);
}

}  // namespace
}  // namespace jitunwind
