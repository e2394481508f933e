// Rows -> .eh_frame: the expected bytes, rows that cannot be encoded, and the way back.
#include "jitunwind/unwind_core/emit/eh_frame.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/cfi/random_rows.h"
#include "tests/cfi/rows_of.h"
#include "tests/support/whole_procedure.h"

namespace jitunwind::test {
namespace {

constexpr AddrRange k_code{0x7f0000001000, 0x7f0000001040};

std::vector<OffsetRow> parsed(const std::vector<std::string>& lines, ExpressionPool& pool,
                              const Arch& arch = arch::x86_64) {
  std::vector<OffsetRow> rows;
  for (const std::string& line : lines) {
    const auto row = parse_row(line, arch, pool);
    EXPECT_TRUE(row) << line << ": " << row.error().what;
    if (row) rows.push_back({row->offset.value_or(0), row->row});
  }
  return rows;
}

/// Writes the rows and reads them back; returns the error's line if they cannot be written.
std::string there_and_back(const std::vector<OffsetRow>& rows, AddrRange code = k_code,
                           const Arch& arch = arch::x86_64) {
  const auto bytes = emit_eh_frame({.code = code, .rows = rows}, arch);
  if (!bytes) return error_line(bytes.error());
  SectionView view({*bytes, 0x5000});
  const CfiContext context{.arch = arch};
  FdeScan scan(view, context, {0x5000, 0x5000 + bytes->size()});
  Fde fde;
  EXPECT_TRUE(scan.next(fde).value());
  EXPECT_EQ(fde.range, code);
  EXPECT_EQ((fde.address - 0x5000) % arch.word_size, 0u);
  EXPECT_EQ(fde.size % arch.word_size, 0u);
  std::string text = rows_of(fde, context);
  EXPECT_FALSE(scan.next(fde).value());
  return text;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(b));
    text += two;
  }
  return text;
}

TEST(EmitEhFrame, Bytes) {
  ExpressionPool pool;
  const auto rows = parsed({"+0: cfa=rsp+8 ra=[cfa-8]", "+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]",
                            "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]", "+3f: cfa=rsp+8 ra=[cfa-8]"},
                           pool);
  const auto bytes = emit_eh_frame({.code = k_code, .rows = rows, .personality = 0x1122, .lsda = 0x3344}, arch::x86_64);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(hex(*bytes),
            // The CIE: length, id, version 1, "zPLR", 1, -8, 16, 11 bytes: personality, LSDA and code absolute.
            "24000000"
            "00000000"
            "01"
            "7a504c5200"
            "01"
            "78"
            "10"
            "0b"
            "002211000000000000"
            "00"
            "00"
            "0c0708"  // def_cfa rsp, 8
            "9001"    // offset rip, 1
            "000000000000"
            // The FDE: length, distance to the CIE, begin, size, 8 bytes: LSDA.
            "2c000000"
            "2c000000"
            "00100000007f0000"
            "4000000000000000"
            "08"
            "4433000000000000"
            "41"      // advance_loc 1
            "0e10"    // def_cfa_offset 16
            "8602"    // offset rbp, 2
            "43"      // advance_loc 3
            "0d06"    // def_cfa_register rbp
            "7b"      // advance_loc 59
            "0c0708"  // def_cfa rsp, 8
            "c6"      // restore rbp
            "0000"
            "00000000");
}

/// Other unwinders authenticate by the wrong key if the CIE does not name the key of signed return addresses.
TEST(EmitEhFrame, KeyOfSignedAddresses) {
  for (const SigningKey key : {SigningKey::a, SigningKey::b}) {
    ExpressionPool pool;
    auto rows = parsed({"+0: cfa=sp", "+4: cfa=sp ra_sign_state=1"}, pool, arch::aarch64);
    for (OffsetRow& row : rows) row.row.signing_key = key;
    const auto bytes = emit_eh_frame({.code = k_code, .rows = rows}, arch::aarch64);
    ASSERT_TRUE(bytes) << bytes.error().what;
    SectionView view({*bytes, 0x5000});
    const CfiContext context{.arch = arch::aarch64};
    FdeScan scan(view, context, {0x5000, 0x5000 + bytes->size()});
    Fde fde;
    ASSERT_TRUE(scan.next(fde).value());
    EXPECT_EQ(fde.cie.signed_with_b_key, key == SigningKey::b);
    FrameRow row;
    ASSERT_TRUE(row_at(fde, context, k_code.begin + 4, row));
    EXPECT_EQ(row.signing_key, key);
  }
}

TEST(EmitEhFrame, EveryRule) {
  const std::vector<std::string> cases[] = {
      {"+0: cfa=rsp+8 ra=[cfa-8]"},
      {"+0: cfa=rsp+200 ra=[cfa-8]", "+1: cfa=rbp+200 ra=[cfa-8]", "+2: cfa=rbp+16 ra=[cfa-8]"},
      {"+0: cfa=rsp-16 ra=[cfa-8]", "+1: cfa=rsp-32 ra=[cfa-8]", "+2: cfa=rbx-24 ra=[cfa-8]", "+3: cfa=r12 ra=[cfa-8]"},
      {"+0: cfa=[rbp-8] ra=[cfa-8]", "+1: cfa=[rsp+64]+24 ra=[cfa-8]", "+2: cfa=[xmm3+64]-24 ra=[cfa-8]",
       "+3: cfa=rsp+64 ra=[cfa-8]"},
      {"+0: cfa=expr(77080696) ra=[cfa-8]", "+1: cfa=expr() ra=[cfa-8]", "+2: cfa=rsp+8 ra=[cfa-8]"},
      {"+0: cfa=rsp+8 rbx=[cfa-16] r12=[cfa+16] xmm15=[cfa-160] r200=[cfa-24] ra=[cfa+8]",
       "+1: cfa=rsp+8 rbx=[cfa-24] r12=[cfa-16] xmm15=[cfa-176] ra=[cfa-8]"},
      {"+0: cfa=rsp+8 rbx=cfa-16 rbp=cfa+16 rsp=cfa ra=[cfa-8]"},
      {"+0: cfa=rsp+8 rbx=undefined rbp=same r12=r13 r14=xmm15 ra=rcx", "+1: cfa=rsp+8 ra=undefined"},
      {"+0: cfa=rsp+8 rbx=[rsp+16] rbp=[xmm15-8] r12=rsp+0 r13=xmm15-24 ra=[cfa-8]"},
      {"+0: cfa=rsp+8 rbx=[expr(3022)] rbp=expr(770806) ra=[expr(12)]"},
      {"+0: cfa=rsp+8 rbx=0 rbp=31 r12=32 r13=-1 r14=-9223372036854775808 ra=[cfa-8]"},
      {"+0: cfa=rsp+8 ra=[cfa-8] args=16", "+1: cfa=rsp+8 ra=[cfa-8] args=4294967295", "+2: cfa=rsp+8 ra=[cfa-8]"},
      {"+0: cfa=rsp+8 rbx=[rsp+168] ra=[rsp+160] signal", "+1: cfa=rsp+16 rbx=[rsp+168] ra=[rsp+160] signal"},
      // Slots between words make the factor -1.
      {"+0: cfa=rsp+8 rbx=[cfa-13] rbp=cfa+3 ra=[cfa-8]", "+1: cfa=rsp-3 rbx=[cfa-9223372036854775808] ra=[cfa-8]"},
  };
  for (const auto& lines : cases) {
    ExpressionPool pool;
    EXPECT_EQ(there_and_back(parsed(lines, pool)), joined(lines));
  }
}

TEST(EmitEhFrame, Aarch64) {
  const std::vector<std::string> lines{"+0: cfa=sp",
                                       "+4: cfa=sp ra_sign_state=1",
                                       "+8: cfa=sp+32 x29=[cfa-32] ra=[cfa-24] ra_sign_state=1",
                                       "+c: cfa=x29+32 x29=[cfa-32] v8=[cfa-16] ra=[cfa-24] ra_sign_state=1",
                                       "+10: cfa=sp ra_sign_state=1",
                                       "+14: cfa=sp",
                                       "+18: cfa=sp ra_sign_state=3",
                                       "+1c: cfa=sp ra_sign_state=2",
                                       "+20: cfa=sp ra_sign_state=1",
                                       "+24: cfa=sp ra_sign_state=expr(3112)",
                                       "+28: cfa=sp ra_sign_state=2",
                                       "+2c: cfa=sp ra_sign_state=4",
                                       "+30: cfa=sp"};
  ExpressionPool pool;
  EXPECT_EQ(there_and_back(parsed(lines, pool, arch::aarch64), k_code, arch::aarch64), joined(lines));
}

TEST(EmitEhFrame, DistancesOfEverySize) {
  for (const std::uint64_t distance :
       {1ull, 0x3full, 0x40ull, 0xffull, 0x100ull, 0xffffull, 0x10000ull, 0xffffffffull, 0x100000000ull}) {
    ExpressionPool pool;
    auto rows = parsed({"cfa=rsp+8 ra=[cfa-8]", "cfa=rsp+16 ra=[cfa-8]", "cfa=rsp+24 ra=[cfa-8]"}, pool);
    rows[1].offset = distance;
    rows[2].offset = 2 * distance;
    const AddrRange code{0x1000, 0x1000 + 3 * distance};
    EXPECT_EQ(there_and_back(rows, code), to_text(0, rows[0].row, arch::x86_64) + "\n" +
                                              to_text(distance, rows[1].row, arch::x86_64) + "\n" +
                                              to_text(2 * distance, rows[2].row, arch::x86_64));
  }
}

TEST(EmitEhFrame, EqualNeighboursAreOneRow) {
  ExpressionPool pool;
  const auto rows = parsed({"+0: cfa=rsp+8 ra=[cfa-8]", "+1: cfa=rsp+8 ra=[cfa-8]", "+2: cfa=rsp+16 ra=[cfa-8]"}, pool);
  EXPECT_EQ(there_and_back(rows), "+0: cfa=rsp+8 ra=[cfa-8]\n+2: cfa=rsp+16 ra=[cfa-8]");
}

TEST(EmitEhFrame, Refused) {
  const auto refused = [](const std::vector<std::string>& lines, const Arch& arch = arch::x86_64) {
    ExpressionPool pool;
    return there_and_back(parsed(lines, pool, arch), k_code, arch);
  };
  const std::string first = "+0: cfa=rsp+8 ra=[cfa-8]";
  EXPECT_EQ(refused({}), "error invalid_argument: procedure without a row at its beginning");
  EXPECT_EQ(refused({"+1: cfa=rsp+8 ra=[cfa-8]"}), "error invalid_argument: procedure without a row at its beginning");
  EXPECT_EQ(refused({first, "+8: cfa=rsp+16 ra=[cfa-8]", "+7: cfa=rsp+8 ra=[cfa-8]"}),
            "error invalid_argument: rows are not in ascending order within the code");
  EXPECT_EQ(refused({first, "+40: cfa=rsp+16 ra=[cfa-8]"}),
            "error invalid_argument: rows are not in ascending order within the code");
  EXPECT_EQ(refused({"+0: cfa=none ra=[cfa-8]"}), "error invalid_argument: row without CFA");
  EXPECT_EQ(refused({"+0: cfa=rsp+8"}), "error invalid_argument: the return address has no rule");
  EXPECT_EQ(refused({first, "+1: cfa=rsp+8 ra=[cfa-8] signal"}),
            "error invalid_argument: row and CIE differ in the return address column or the signal mark");
  EXPECT_EQ(refused({"+0: cfa=sp", "+2: cfa=sp+16"}, arch::aarch64),
            "error invalid_argument: row in the middle of an instruction");
}

TEST(EmitEhFrame, SeveralProceduresOfOneCie) {
  ExpressionPool pool;
  const auto rows = parsed({"+0: cfa=rsp+8 ra=[cfa-8]", "+1: cfa=rsp+16 ra=[cfa-8]"}, pool);
  std::array<std::byte, 512> buffer;
  const auto write = [&](EhFrameWriter& writer) {
    for (int cie = 0; cie < 2; ++cie) {
      writer.begin_cie({.personality = cie == 0 ? 0u : 0x99u});
      for (Addr i = 1; i <= 3; ++i) {
        writer.begin_fde({0x1000 * i, 0x1000 * i + 16 * i}, 0);
        for (const OffsetRow& r : rows) EXPECT_TRUE(writer.row(r.offset, r.row));
        writer.end_fde();
      }
    }
    writer.terminate();
  };
  EhFrameWriter writer(arch::x86_64, buffer);
  write(writer);
  ASSERT_TRUE(writer.fits());
  SectionView view({std::span<const std::byte>(buffer).first(writer.size()), 0x5000});
  const CfiContext context{.arch = arch::x86_64};
  FdeScan scan(view, context, {0x5000, 0x5000 + writer.size()});
  for (int cie = 0; cie < 2; ++cie)
    for (Addr i = 1; i <= 3; ++i) {
      Fde fde;
      ASSERT_TRUE(scan.next(fde).value());
      EXPECT_EQ(fde.range, (AddrRange{0x1000 * i, 0x1000 * i + 16 * i}));
      EXPECT_EQ(fde.cie.personality.value, cie == 0 ? 0u : 0x99u);
      EXPECT_EQ(rows_of(fde, context), "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]");
    }
  // The writer returns the needed size if a buffer is too small, and writes nothing behind its end.
  for (std::size_t room = 0; room < writer.size(); ++room) {
    std::vector<std::byte> small(room);
    EhFrameWriter short_writer(arch::x86_64, small);
    write(short_writer);
    EXPECT_FALSE(short_writer.fits());
    EXPECT_EQ(short_writer.size(), writer.size());
  }
}

/// Bytes that lie at another address describe code that is as far from there as before.
TEST(EmitEhFrame, RelativePointersMoveWithTheBytes) {
  ExpressionPool pool;
  const auto rows = parsed({"+0: cfa=rsp+8 ra=[cfa-8]", "+200000000: cfa=rsp+16 ra=[cfa-8]"}, pool);
  const AddrRange code{0x7f0000001000, 0x7f0300000000};
  std::vector<std::byte> bytes(256);
  EhFrameWriter writer(arch::x86_64, bytes, 0x5000);
  writer.begin_cie({.personality = 0x1122, .has_lsda = true});
  writer.begin_fde(code, 0x3344);
  for (const OffsetRow& row : rows) ASSERT_TRUE(writer.row(row.offset, row.row));
  writer.end_fde();
  writer.begin_fde({0x6000, 0x6001}, 0);  // no language-specific data
  writer.end_fde();
  writer.terminate();
  ASSERT_TRUE(writer.fits());
  bytes.resize(writer.size());
  for (const Addr distance : {0x0, 0x100000}) {
    SectionView view({bytes, 0x5000 + distance});
    const CfiContext context{.arch = arch::x86_64};
    FdeScan scan(view, context, {0x5000 + distance, 0x5000 + distance + bytes.size()});
    Fde fde;
    ASSERT_TRUE(scan.next(fde).value());
    EXPECT_EQ(fde.range, (AddrRange{code.begin + distance, code.end + distance}));
    EXPECT_EQ(fde.cie.personality.value, 0x1122 + distance);
    EXPECT_EQ(fde.lsda.value, 0x3344 + distance);
    EXPECT_EQ(rows_of(fde, context),
              to_text(0, rows[0].row, arch::x86_64) + "\n" + to_text(rows[1].offset, rows[1].row, arch::x86_64));
    ASSERT_TRUE(scan.next(fde).value());
    EXPECT_EQ(fde.range.begin, 0x6000 + distance);
    EXPECT_EQ(fde.lsda.value, 0u);
  }
}

TEST(EmitEhFrame, RandomRowsComeBack) {
  std::mt19937_64 random(1);
  std::size_t rows_seen = 0;
  for (int i = 0; i < 6000; ++i) {
    const Arch& arch = i % 2 == 0 ? arch::x86_64 : arch::aarch64;
    ExpressionPool pool;
    const std::vector<OffsetRow> rows = RandomRows(random, arch, pool).procedure();
    const AddrRange code{0x10000, 0x10000 + rows.back().offset + arch.unit};
    std::string expected;
    const FrameRow* last = nullptr;
    for (const OffsetRow& r : rows) {
      if (last && r.row == *last) continue;
      last = &r.row;
      expected += (expected.empty() ? "" : "\n") + to_text(r.offset, r.row, arch);
      ++rows_seen;
    }
    ASSERT_EQ(there_and_back(rows, code, arch), expected);
  }
  EXPECT_GT(rows_seen, 30000u);
}

}  // namespace
}  // namespace jitunwind::test
