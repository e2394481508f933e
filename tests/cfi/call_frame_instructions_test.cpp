// Every call frame instruction of DWARF 5, 6.4.2 and the GNU and AArch64 ones, as bytes -> rows.
#include <gtest/gtest.h>

#include "tests/cfi/rows_of.h"

namespace jitunwind::test {
namespace {

/// Returns the rows of 64 bytes of code at 0x1000 with these instructions behind the usual CIE.
std::string rows(const Bytes& instructions, const CieSpec& cie = {}, const Arch& arch = arch::x86_64) {
  CfiSection section;
  const Addr at = section.cie(cie);
  const CfiContext context{.arch = arch};
  return rows_of(section, section.fde(at, 0x1000, 64, instructions), context);
}

struct Case {
  const char* what;
  Bytes instructions;
  const char* rows;
};

TEST(CallFrameInstructions, Rows) {
  const Case cases[] = {
      {"nothing", {}, "+0: cfa=rsp+8 ra=[cfa-8]"},
      {"nop", {0, 0, 0}, "+0: cfa=rsp+8 ra=[cfa-8]"},
      {"advance_loc, def_cfa_offset", {0x41, 0x0e, 16}, "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]"},
      {"advance_loc of 0 is the same row", {0x40, 0x0e, 16}, "+0: cfa=rsp+16 ra=[cfa-8]"},
      {"advance_loc without a change is a row", {0x41}, "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"},
      {"advance_loc1", {0x02, 5, 0x0e, 16}, "+0: cfa=rsp+8 ra=[cfa-8]\n+5: cfa=rsp+16 ra=[cfa-8]"},
      {"advance_loc2", {0x03, 6, 0, 0x0e, 16}, "+0: cfa=rsp+8 ra=[cfa-8]\n+6: cfa=rsp+16 ra=[cfa-8]"},
      {"advance_loc4", {0x04, 7, 0, 0, 0, 0x0e, 16}, "+0: cfa=rsp+8 ra=[cfa-8]\n+7: cfa=rsp+16 ra=[cfa-8]"},
      {"MIPS_advance_loc8",
       {0x1d, 8, 0, 0, 0, 0, 0, 0, 0, 0x0e, 16},
       "+0: cfa=rsp+8 ra=[cfa-8]\n+8: cfa=rsp+16 ra=[cfa-8]"},
      {"set_loc", {0x01, 9, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16}, "+0: cfa=rsp+8 ra=[cfa-8]\n+9: cfa=rsp+16 ra=[cfa-8]"},
      {"rows behind the end are none",
       {0x41, 0x02, 63, 0x0e, 16},
       "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"},
      {"offset, offset_extended, offset_extended_sf",
       {0x83, 2, 0x05, 6, 3, 0x11, 12, 0x7c},
       "+0: cfa=rsp+8 rbx=[cfa-16] rbp=[cfa-24] r12=[cfa+32] ra=[cfa-8]"},
      {"GNU_negative_offset_extended", {0x2f, 6, 3}, "+0: cfa=rsp+8 rbp=[cfa+24] ra=[cfa-8]"},
      {"val_offset, val_offset_sf", {0x14, 6, 3, 0x15, 7, 0x7f}, "+0: cfa=rsp+8 rbp=cfa-24 rsp=cfa+8 ra=[cfa-8]"},
      {"undefined, same_value, register",
       {0x07, 3, 0x08, 6, 0x09, 16, 2},
       "+0: cfa=rsp+8 rbx=undefined rbp=same ra=rcx"},
      {"restore, restore_extended to no rule",
       {0x86, 2, 0x83, 3, 0x41, 0xc6, 0x06, 3},
       "+0: cfa=rsp+8 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"},
      {"restore, restore_extended to the CIE's rule",
       {0x90, 5, 0x41, 0xd0, 0x41, 0x90, 6, 0x41, 0x06, 16},
       "+0: cfa=rsp+8 ra=[cfa-40]\n+1: cfa=rsp+8 ra=[cfa-8]\n+2: cfa=rsp+8 ra=[cfa-48]\n+3: cfa=rsp+8 ra=[cfa-8]"},
      {"def_cfa, def_cfa_register",
       {0x0c, 6, 16, 0x41, 0x0d, 3},
       "+0: cfa=rbp+16 ra=[cfa-8]\n+1: cfa=rbx+16 ra=[cfa-8]"},
      {"def_cfa_sf, def_cfa_offset_sf",
       {0x12, 6, 0x02, 0x41, 0x13, 0x7e},
       "+0: cfa=rbp-16 ra=[cfa-8]\n+1: cfa=rbp+16 ra=[cfa-8]"},
      {"remember_state, restore_state: rules and CFA",
       {0x0a, 0x86, 2, 0x0c, 6, 16, 0x41, 0x0b},
       "+0: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"},
      {"remember_state nests",
       {0x0a, 0x83, 2, 0x0a, 0x86, 3, 0x41, 0x0b, 0x41, 0x0b, 0x41, 0x8c, 4},
       "+0: cfa=rsp+8 rbx=[cfa-16] rbp=[cfa-24] ra=[cfa-8]\n+1: cfa=rsp+8 rbx=[cfa-16] ra=[cfa-8]\n"
       "+2: cfa=rsp+8 ra=[cfa-8]\n+3: cfa=rsp+8 r12=[cfa-32] ra=[cfa-8]"},
      {"GNU_args_size; it is no rule", {0x0a, 0x2e, 16, 0x0b}, "+0: cfa=rsp+8 ra=[cfa-8] args=16"},
      {"def_cfa_expression", {0x0f, 2, 0x77, 8}, "+0: cfa=expr(7708) ra=[cfa-8]"},
      {"breg, deref", {0x0f, 4, 0x77, 0xa0, 1, 0x06}, "+0: cfa=[rsp+160] ra=[cfa-8]"},
      {"breg, deref, plus_uconst", {0x0f, 5, 0x77, 8, 0x06, 0x23, 24}, "+0: cfa=[rsp+8]+24 ra=[cfa-8]"},
      {"bregx, deref, consts, plus", {0x0f, 7, 0x92, 6, 0x78, 0x06, 0x11, 0x70, 0x22}, "+0: cfa=[rbp-8]-16 ra=[cfa-8]"},
      {"breg, deref, lit, plus", {0x0f, 5, 0x76, 0x78, 0x06, 0x38, 0x22}, "+0: cfa=[rbp-8]+8 ra=[cfa-8]"},
      {"breg, deref, const1u, minus", {0x0f, 6, 0x76, 0, 0x06, 0x08, 8, 0x1c}, "+0: cfa=expr(76000608081c) ra=[cfa-8]"},
      {"breg, deref, deref", {0x0f, 4, 0x76, 0, 0x06, 0x06}, "+0: cfa=expr(76000606) ra=[cfa-8]"},
      {"breg, deref, plus_uconst, nop", {0x0f, 6, 0x76, 0, 6, 0x23, 8, 0x96}, "+0: cfa=expr(760006230896) ra=[cfa-8]"},
      {"operand cut off", {0x0f, 1, 0x77}, "+0: cfa=expr(77) ra=[cfa-8]"},
      {"an empty expression", {0x0f, 0}, "+0: cfa=expr() ra=[cfa-8]"},
      {"expression, val_expression",
       {0x10, 3, 2, 0x30, 0x22, 0x16, 6, 3, 0x77, 8, 0x06},
       "+0: cfa=rsp+8 rbx=[expr(3022)] rbp=expr(770806) ra=[cfa-8]"},
      {"breg alone",
       {0x10, 3, 3, 0x77, 0xf0, 0, 0x16, 6, 2, 0x76, 0x70, 0x16, 7, 3, 0x92, 20, 0},
       "+0: cfa=rsp+8 rbx=[rsp+112] rbp=rbp-16 rsp=xmm3+0 ra=[cfa-8]"},
      {"a constant alone", {0x16, 3, 1, 0x41 - 8, 0x16, 6, 2, 0x09, 0xff}, "+0: cfa=rsp+8 rbx=9 rbp=-1 ra=[cfa-8]"},
      {"an address alone is no constant",
       {0x16, 3, 9, 3, 1, 2, 3, 4, 5, 6, 7, 8},
       "+0: cfa=rsp+8 rbx=expr(030102030405060708) ra=[cfa-8]"},
  };
  for (const Case& c : cases) EXPECT_EQ(rows(c.instructions), c.rows) << c.what;
}

TEST(CallFrameInstructions, FactorsApply) {
  const CieSpec cie{.code_alignment = 4, .data_alignment = 16, .return_address = 30, .instructions = {0x0c, 31, 0}};
  EXPECT_EQ(rows({0x42, 0x9e, 1, 0x12, 31, 2, 0x15, 29, 0x7f}, cie, arch::aarch64),
            "+0: cfa=sp\n+8: cfa=sp+32 x29=cfa-16 ra=[cfa+16]");
}

TEST(CallFrameInstructions, SigningStateOfTheReturnAddress) {
  const CieSpec cie{.code_alignment = 4, .return_address = 30, .instructions = {0x0c, 31, 0}};
  EXPECT_EQ(rows({0x41, 0x2d, 0x41, 0x2d, 0x41, 0x2c, 0x41, 0x2d, 0x41, 0x2c, 0x2d}, cie, arch::aarch64),
            "+0: cfa=sp\n+4: cfa=sp ra_sign_state=1\n+8: cfa=sp\n+c: cfa=sp ra_sign_state=3\n"
            "+10: cfa=sp ra_sign_state=2\n+14: cfa=sp");
  EXPECT_EQ(rows({0x0a, 0x2d, 0x41, 0x0b}, cie, arch::aarch64), "+0: cfa=sp ra_sign_state=1\n+4: cfa=sp");
  // gcc 15 sets the state, clang toggles it.
  EXPECT_EQ(rows({0x16, 34, 1, 0x31, 0x41, 0x2d}, cie, arch::aarch64), "+0: cfa=sp ra_sign_state=1\n+4: cfa=sp");
  EXPECT_EQ(rows({0x2d, 0x41, 0x16, 34, 1, 0x30}, cie, arch::aarch64), "+0: cfa=sp ra_sign_state=1\n+4: cfa=sp");
  EXPECT_EQ(rows({0x07, 34, 0x2d}, cie, arch::aarch64),
            "error bad_structure: signing state that is not known is toggled");
  EXPECT_EQ(rows({0x2d}), "error bad_opcode: return addresses are not signed on this CPU");
}

TEST(CallFrameInstructions, Refused) {
  const Case cases[] = {
      {"unknown", {0x17}, "error bad_opcode: unknown call frame instruction"},
      {"unknown, user range", {0x3f}, "error bad_opcode: unknown call frame instruction"},
      {"restore_state without remember_state", {0x0b}, "error bad_structure: no remembered state to restore"},
      {"one restore_state too many", {0x0a, 0x0b, 0x0b}, "error bad_structure: no remembered state to restore"},
      {"set_loc backwards",
       {0x04, 32, 0, 0, 0, 0x01, 0x1f, 0x10, 0, 0, 0, 0, 0, 0},
       "+0: cfa=rsp+8 ra=[cfa-8]\nerror bad_structure: DW_CFA_set_loc does not move forward"},
      {"offset of an expression CFA",
       {0x0f, 2, 0x77, 8, 0x0e, 8},
       "error bad_structure: offset of a CFA that is not register and offset"},
      {"offset of a loaded CFA",
       {0x0f, 3, 0x77, 8, 6, 0x13, 1},
       "error bad_structure: offset of a CFA that is not register and offset"},
      {"register number",
       {0x05, 0xff, 0xff, 0x03, 1},
       "error bad_register: register number of a call frame instruction"},
      {"leb of more than 64 bits",
       {0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
       "error bad_encoding: operand of a call frame instruction"},
      {"operand cut off", {0x0e}, "error truncated: operand of a call frame instruction"},
      {"expression longer than the FDE", {0x0f, 9, 0x77}, "error truncated: operand of a call frame instruction"},
      {"args size of 4 GiB", {0x2e, 0x80, 0x80, 0x80, 0x80, 0x10}, "error bad_structure: size of pushed arguments"},
      {"advance past 2^64",
       {0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
       "error bad_structure: location behind the end of the address space"},
  };
  for (const Case& c : cases) EXPECT_EQ(rows(c.instructions), c.rows) << c.what;
}

TEST(CallFrameInstructions, ErrorsSayWhere) {
  CfiSection section;
  const Addr cie = section.cie({});
  const Addr at = section.fde(cie, 0x1000, 64, {0x00, 0x00, 0x3f});
  SectionView view(section.section());
  const CfiContext context{.arch = arch::x86_64};
  const auto fde = read_fde(view, context, at);
  ASSERT_TRUE(fde);
  FrameRow row;
  const Status status = row_at(*fde, context, 0x1000, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().at, section.here() - 1);
}

TEST(CallFrameInstructions, EveryPrefixIsRowsOrAnError) {
  Bytes all{0x0a, 0x83, 2, 0x05, 6,    3,    0x11, 12, 0x7c, 0x41, 0x0c, 6,    16,   0x02,
            2,    0x0d, 7, 0x0e, 0x90, 0x01, 0x0b, 3,  1,    0,    0x0f, 3,    0x77, 0x08,
            0x06, 0x16, 3, 2,    0x77, 0x10, 0x04, 1,  0,    0,    0,    0x2e, 8};
  for (std::size_t size = 0; size <= all.size(); ++size) {
    Bytes prefix;
    for (std::size_t i = 0; i < size; ++i) prefix.u8(std::to_integer<unsigned>(all.vector()[i]));
    const std::string text = rows(prefix);
    EXPECT_TRUE(text.starts_with("+0: ") || text.starts_with("error ")) << text;
  }
}

// libgcrypt.so.20.4.1 of Debian 12 has this at .eh_frame+0xeb30. readelf reads it so, and libgcc keeps the offset.
TEST(CallFrameInstructions, RegisterBehindAnExpressionTakesTheLastOffset) {
  EXPECT_EQ(rows({0x0e, 56, 0x41, 0x0d, 0, 0x41, 0x0f, 6, 0x77, 0x98, 4, 6, 0x23, 56, 0x41, 0x0d, 7}),
            "+0: cfa=rsp+56 ra=[cfa-8]\n+1: cfa=rax+56 ra=[cfa-8]\n+2: cfa=[rsp+536]+56 ra=[cfa-8]\n"
            "+3: cfa=rsp+56 ra=[cfa-8]");
  // The state that is restored has its own last offset.
  EXPECT_EQ(rows({0x0f, 2, 0x77, 8, 0x0a, 0x0c, 6, 16, 0x0b, 0x41, 0x0d, 3}),
            "+0: cfa=expr(7708) ra=[cfa-8]\n+1: cfa=rbx+8 ra=[cfa-8]");
}

TEST(CallFrameInstructions, InitialInstructions) {
  const char* const moved = "error bad_structure: initial instructions of a CIE move the location";
  EXPECT_EQ(rows({}, {.instructions = {0x41}}), moved);
  EXPECT_EQ(rows({}, {.instructions = {0x0a}}), "error bad_structure: initial instructions of a CIE remember a state");
  EXPECT_EQ(rows({}, {.instructions = {0x0b}}), "error bad_structure: no remembered state to restore");
  EXPECT_EQ(rows({}, {.instructions = {0x0c, 7, 8, 0x90, 1, 0xd0}}), "+0: cfa=rsp+8");
  EXPECT_EQ(rows({}, {.instructions = {}}), "+0: cfa=none");
  EXPECT_EQ(rows({}, {.instructions = {0x0d, 7}}), "+0: cfa=rsp") << "RISC-V's way";
  EXPECT_EQ(rows({}, {.instructions = {0x0e, 8}}),
            "error bad_structure: offset of a CFA that is not register and offset");
}

TEST(CallFrameInstructions, StatesAndRulesAreBounded) {
  Bytes wide;
  for (unsigned reg = 17; reg < 17 + FrameRow::k_max_rules; ++reg) wide.u8(0x05).uleb(reg).uleb(reg);
  EXPECT_EQ(rows(wide), "error row_too_wide: more rules than a row holds");
  Bytes deep;
  for (int i = 0; i < 300; ++i) deep.u8(0x0a);
  EXPECT_EQ(rows(deep), "error too_deep: too many remembered states");
}

/// gcc and clang nest one deep. Twenty states of a procedure that saves everything are room for hand-written code.
TEST(CallFrameInstructions, TwentyNestedStates) {
  Bytes nested{0x83, 2, 0x86, 3, 0x8c, 4, 0x8d, 5};
  for (unsigned i = 1; i <= 20; ++i) nested.u8(0x0a).u8(0x0e).uleb(8 + 8 * i);
  nested.u8(0x41);
  for (unsigned i = 1; i <= 20; ++i) nested.u8(0x0b);
  EXPECT_EQ(rows(nested),
            "+0: cfa=rsp+168 rbx=[cfa-16] rbp=[cfa-24] r12=[cfa-32] r13=[cfa-40] ra=[cfa-8]\n"
            "+1: cfa=rsp+8 rbx=[cfa-16] rbp=[cfa-24] r12=[cfa-32] r13=[cfa-40] ra=[cfa-8]");
}

/// libgcc has room for any number of states. An exception must not end here because of theirs alone.
TEST(CallFrameInstructions, RowsOfWalksHaveAnyNumberOfStates) {
  constexpr unsigned k_states = 20'000;
  Bytes nested{0x83, 2, 0x86, 3, 0x8c, 4, 0x8d, 5, 0x8e, 6, 0x8f, 7};
  for (unsigned i = 1; i <= k_states; ++i) nested.u8(0x0a).u8(0x0e).uleb(8 + 8 * i).u8(0x41);
  for (unsigned i = 1; i <= k_states; ++i) nested.u8(0x0b).u8(0x41);
  CfiSection section;
  const Addr at = section.fde(section.cie({}), 0x1000, 2 * k_states + 1, nested);
  SectionView view(section.section());
  const CfiContext context{arch::x86_64};
  const auto fde = read_fde(view, context, at);
  ASSERT_TRUE(fde);
  FrameRow row;
  for (const unsigned depth : {1u, 21u, 1000u, k_states}) {
    for (const Addr pc : {0xfff + Addr{depth}, 0xfff + Addr{2 * k_states - depth}}) {
      ASSERT_TRUE(row_at(*fde, context, pc, row)) << depth;
      EXPECT_EQ(to_text(row, arch::x86_64), "cfa=rsp+" + std::to_string(8 + 8 * depth) +
                                                " rbx=[cfa-16] rbp=[cfa-24] r12=[cfa-32] r13=[cfa-40] r14=[cfa-48] "
                                                "r15=[cfa-56] ra=[cfa-8]");
    }
  }
  ASSERT_TRUE(row_at(*fde, context, 0x1000 + 2 * k_states, row));
  EXPECT_EQ(row.cfa, CfaRule::at(7, 8));
}

TEST(CallFrameInstructions, RowAtAnAddress) {
  CfiSection section;
  const Addr cie = section.cie({});
  const Addr at = section.fde(cie, 0x1000, 16, {0x41, 0x0e, 16, 0x44, 0x0d, 6});
  SectionView view(section.section());
  const CfiContext context{.arch = arch::x86_64};
  const auto fde = read_fde(view, context, at);
  ASSERT_TRUE(fde);
  const struct {
    Addr pc;
    const char* row;
    AddrRange range;
  } cases[] = {
      {0x1000, "cfa=rsp+8 ra=[cfa-8]", {0x1000, 0x1001}},  {0x1001, "cfa=rsp+16 ra=[cfa-8]", {0x1001, 0x1005}},
      {0x1004, "cfa=rsp+16 ra=[cfa-8]", {0x1001, 0x1005}}, {0x1005, "cfa=rbp+16 ra=[cfa-8]", {0x1005, 0x1010}},
      {0x100f, "cfa=rbp+16 ra=[cfa-8]", {0x1005, 0x1010}},
  };
  for (const auto& c : cases) {
    FrameRow row;
    ASSERT_TRUE(row_at(*fde, context, c.pc, row));
    EXPECT_EQ(to_text(row, arch::x86_64), c.row) << c.pc;
    EXPECT_EQ(row.range, c.range);
    EXPECT_EQ(row.ra, arch::x86_64.ra);
  }
  FrameRow row;
  const Status outside = row_at(*fde, context, 0x1010, row);
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, ErrorCode::no_info);
}

}  // namespace
}  // namespace jitunwind::test
