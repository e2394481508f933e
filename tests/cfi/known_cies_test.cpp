// CIEs kept by their bytes, and compact rows straight from call frame instructions. They equal those of the general
// way, and nothing is kept that depends on more.
#include <gtest/gtest.h>

#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "tests/cfi/rows_of.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_size = 64;
const Bytes k_program{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x50, 0x0c, 7, 8, 0xc6, 0x41, 0x0b};

CieSpec cie_of(const char* augmentation, const Bytes& data, const Bytes& instructions = {0x0c, 7, 8, 0x90, 1, 0, 0}) {
  return {.augmentation = augmentation, .augmentation_data = data, .instructions = instructions};
}
CieSpec usual() { return cie_of("zR", {0x1b}); }
CieSpec absolute() { return cie_of("zR", {0x00}); }
/// `personality` is its distance.
CieSpec with_handlers(std::uint32_t personality) {
  return cie_of("zPLR", Bytes{0x9b}.u32(personality).u8(0x1b).u8(0x1b));
}

/// A section whose FDEs are for code right behind it.
struct Section {
  CfiSection bytes;
  Addr fde = 0;
  Addr begin = 0;

  explicit Section(const CieSpec& cie, const Bytes& data = {}, const Bytes& instructions = k_program, Addr at = 0x10000)
      : bytes(at), begin(at + 0x1000) {
    const Addr cie_at = bytes.cie(cie);
    const bool is_relative =
        cie.augmentation_data.size() != 0 && cie.augmentation_data.vector().back() == std::byte{0x1b};
    const Addr code_at = bytes.here() + 8;
    Bytes body;
    is_relative ? body.u32(begin - code_at).u32(k_size) : body.u64(begin).u64(k_size);
    fde = bytes.fde(cie_at, body.block(data).add(instructions));
    bytes.data().fill(32, 0);
  }
};

bool is_same(const EncodedPointer& a, const EncodedPointer& b) {
  return a.value == b.value && a.indirect == b.indirect;
}
/// Personality and data of the procedure.
bool says_the_same(const Fde& a, const Fde& b) {
  return a.address == b.address && a.size == b.size && a.range == b.range && is_same(a.lsda, b.lsda) &&
         is_same(a.cie.personality, b.cie.personality);
}

class KnownCiesTest : public testing::Test {
 protected:
  KnownCies known_;
  const Arch* arch_ = &arch::x86_64;

  bool read(const SectionBytes& section, Addr fde, Addr pc, CompactCode& out) {
    return read_known_fde(section, fde, known_, *arch_, out) && out.range.contains(pc);
  }
  bool is_known(const Section& section) {
    CompactCode code;
    return read(section.bytes.section(), section.fde, section.begin, code);
  }
  /// Compares the short way with the general one wherever it finds a row. Returns how often it does.
  std::size_t same_rows(const Section& section) {
    const CompactLayout layout(*arch_);
    SectionView view(section.bytes.section());
    const auto fde = read_fde(view, {.arch = *arch_}, section.fde);
    std::size_t found = 0;
    for (Addr at = section.begin; at < section.begin + k_size; ++at) {
      CompactCode code;
      CompactRow row, expected;
      AddrRange range;
      FrameRow in_full;
      if (!read(section.bytes.section(), section.fde, at, code) || !find_compact_row(code, layout, at, row, range))
        continue;
      ++found;
      Fde known;
      read_known_procedure(section.bytes.section(), section.fde, code, known);
      EXPECT_TRUE(fde && says_the_same(known, *fde)) << at;
      EXPECT_TRUE(fde && row_at(*fde, {.arch = *arch_}, at, in_full) && compact(in_full, layout, expected)) << at;
      EXPECT_EQ(row, expected) << at;
      EXPECT_EQ(range, in_full.range) << at;
    }
    return found;
  }
  std::size_t same_rows(const Bytes& instructions) { return same_rows(Section(usual(), {}, instructions)); }
};

TEST_F(KnownCiesTest, OfTheSameBytesAnywhere) {
  const Section first(usual());
  const Section elsewhere(usual(), {}, {0x44, 0x0e, 32, 0x83, 4}, 0x7000'0000);
  for (const Section* section : {&first, &elsewhere, &first}) {
    EXPECT_TRUE(is_known(*section));
    EXPECT_EQ(same_rows(*section), k_size);
  }
}

TEST_F(KnownCiesTest, WhateverThePersonality) {
  const Bytes lsda{1, 2, 3, 4};
  const Section first(with_handlers(0x100), lsda);
  const Section other(with_handlers(0xffff'0000), lsda);
  EXPECT_EQ(same_rows(first), k_size);
  EXPECT_EQ(same_rows(other), k_size);
  EXPECT_EQ(same_rows(Section(with_handlers(0), {0, 0, 0, 0})), k_size) << "neither, of a place where both may be";
  EXPECT_EQ(same_rows(Section(cie_of("zPR", Bytes{0x03}.u32(0xffff'0000).u8(0x1b)))), k_size) << "not relative";
  EXPECT_FALSE(is_known(Section(with_handlers(0x100), {})));
  EXPECT_FALSE(is_known(Section(with_handlers(0x100), {1, 2, 3, 4, 5})));
  // Eight different CIEs are kept; CIEs that differ in the personality alone count as one.
  for (std::uint32_t personality = 0; personality < 100; ++personality)
    EXPECT_TRUE(is_known(Section(with_handlers(0x1000 + personality), lsda)));
  EXPECT_TRUE(is_known(Section(usual())));
}

// JITs write such pointers, since they know where their code is.
TEST_F(KnownCiesTest, WithAbsolutePointers) {
  for (const Section& section : {Section(absolute()), Section(cie_of("z", {})), Section(absolute(), {}, {})}) {
    EXPECT_EQ(same_rows(section), k_size);
    Fde fde;
    EXPECT_TRUE(read_lone_fde(section.bytes.section(), arch::x86_64, fde));
    EXPECT_EQ(fde.range, (AddrRange{section.begin, section.begin + k_size}));
  }
  EXPECT_FALSE(is_known(Section(absolute(), {1})));
}

TEST_F(KnownCiesTest, NotOthers) {
  EXPECT_TRUE(is_known(Section(usual())));
  CieSpec factor = usual();
  factor.data_alignment = -4;
  EXPECT_FALSE(is_known(Section(factor)));
  EXPECT_FALSE(is_known(Section(cie_of("zS", {}))));
  EXPECT_FALSE(is_known(Section(cie_of("zRS", {0x1b})))) << "a signal frame's registers are elsewhere";
  EXPECT_EQ(same_rows(Section(cie_of("zR", {0x1b}, {0x0c, 7, 16, 0x90, 1, 0, 0}))), k_size) << "known by itself";
  arch_ = &arch::aarch64;
  EXPECT_FALSE(is_known(Section(usual())));
}

TEST_F(KnownCiesTest, OnlyWhatItCovers) {
  const Section section(usual());
  CompactCode code;
  const auto covers = [&](Addr pc) { return read(section.bytes.section(), section.fde, pc, code); };
  EXPECT_TRUE(covers(section.begin) && covers(section.begin + k_size - 1));
  EXPECT_FALSE(covers(section.begin - 1) || covers(section.begin + k_size));
}

/// Assemblers put into the CIE that the first function of a program has no caller.
TEST_F(KnownCiesTest, WhereProgramsBegin) {
  const CieSpec outermost = cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x90, 1, 0x07, 16});
  for (const Bytes& instructions : {Bytes{}, Bytes{0, 0, 0}, k_program, Bytes{0x90, 1}}) {
    const Section section(outermost, {}, instructions);
    SectionView view(section.bytes.section());
    const auto fde = read_fde(view, {.arch = *arch_}, section.fde);
    CompactCode code;
    FrameRow expected;
    ASSERT_TRUE(read(section.bytes.section(), section.fde, section.begin, code));
    EXPECT_EQ(same_rows(section), 0u) << "not compact";
    ASSERT_TRUE(fde && row_at(*fde, {.arch = *arch_}, section.begin, expected));
    const bool has_nothing_else = instructions.size() == 0 || instructions.vector()[0] == std::byte{0};
    EXPECT_EQ(is_outermost(code), has_nothing_else);
    if (has_nothing_else) {
      EXPECT_EQ(outermost_row(code, CompactLayout(*arch_)), expected);
    }
  }
  CompactCode code;
  const Section others(usual());
  ASSERT_TRUE(read(others.bytes.section(), others.fde, others.begin, code));
  EXPECT_FALSE(is_outermost(code));
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x90, 1, 0x07, 6}))));
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x07, 16, 0x90, 1})))) << "a caller after all";
  EXPECT_EQ(same_rows(Section(usual(), {}, {0x07, 16})), 0u);
}

// Expressions are bytes of a module that may go away.
TEST_F(KnownCiesTest, NotWithExpressions) {
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0f, 3, 0x77, 8, 6, 0x90, 1}))));
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x10, 16, 2, 0x77, 0, 0}))));
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x41, 0x0c, 7, 8, 0x90, 1})))) << "moves the location";
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x90, 1, 0x0a, 0})))) << "remembers a state";
}

TEST_F(KnownCiesTest, NotWhereThePlaceCounts) {
  // The personality is aligned to a word, so the fields behind it move with the CIE.
  EXPECT_FALSE(is_known(Section(cie_of("zPR", Bytes{0x50}.fill(7, 0).u64(0x1000).u8(0x1b), {0x0c, 7, 8, 0}))));
}

/// JITs announce such sections one by one: all of one is read at once, or nothing.
TEST(LoneFde, IsThatOfTheGeneralWay) {
  const auto bytes_of = [](const Section& section, std::size_t from, std::size_t size) {
    const SectionBytes all = section.bytes.section();
    return SectionBytes{all.bytes.subspan(from, size), all.address + from};
  };
  const Section section(with_handlers(0x100), {1, 2, 3, 4});
  const SectionBytes all = section.bytes.section();
  SectionView view(all);
  const auto expected = read_fde(view, {.arch = arch::x86_64}, section.fde);
  Fde fde;
  ASSERT_TRUE(expected && read_lone_fde(all, arch::x86_64, fde));
  EXPECT_TRUE(says_the_same(fde, *expected));
  EXPECT_EQ(fde.cie.address, expected->cie.address);
  EXPECT_EQ(fde.cie.pointer_encoding, expected->cie.pointer_encoding);
  const auto end = static_cast<std::size_t>(expected->address + expected->size - all.address);
  for (std::size_t size = 0; size < end + 4; ++size)
    EXPECT_FALSE(read_lone_fde(bytes_of(section, 0, size), arch::x86_64, fde)) << size;
  EXPECT_TRUE(read_lone_fde(bytes_of(section, 0, end + 4), arch::x86_64, fde));
  const auto begin = static_cast<std::size_t>(section.fde - all.address);
  EXPECT_FALSE(read_lone_fde(bytes_of(section, begin, all.bytes.size() - begin), arch::x86_64, fde)) << "the FDE alone";
  CfiSection two;
  const Addr cie = two.cie(usual());
  for (int i = 0; i < 2; ++i) two.fde(cie, Bytes{}.u32(0x1000).u32(k_size).block(Bytes{}).add(k_program));
  two.data().fill(32, 0);
  EXPECT_FALSE(read_lone_fde(two.section(), arch::x86_64, fde)) << "another entry is behind it";
}

TEST_F(KnownCiesTest, EightOfThem) {
  for (unsigned i = 0; i < 9; ++i) {
    const Section section(cie_of("zR", {0x1b}, {0x0c, 7, 8 + 8 * i, 0x90, 1, 0, 0}));
    EXPECT_EQ(is_known(section), i < 8) << i;
  }
  EXPECT_TRUE(is_known(Section(usual())));
}

/// Every instruction that a compact row can express, and some that it cannot.
TEST_F(KnownCiesTest, InstructionByInstruction) {
  EXPECT_EQ(same_rows({}), k_size);
  EXPECT_EQ(same_rows({0x44, 0x0e, 0x80, 2, 0x44, 0x0e, 0x80, 0x80, 4}), k_size) << "numbers of several bytes";
  EXPECT_EQ(same_rows({0x02, 3, 0x83, 2, 0x03, 4, 0, 0x8c, 3, 0x04, 5, 0, 0, 0, 0x8d, 4}), k_size) << "longer advances";
  EXPECT_EQ(same_rows({0x41, 0x05, 3, 2, 0x41, 0x06, 3, 0x41, 0x83, 9, 0x41, 0xc3}), k_size) << "extended ones";
  EXPECT_EQ(same_rows({0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0a, 0x0c, 6, 24, 0x83, 200, 1, 0x41, 0x0b, 0x41, 0x0d, 6}),
            k_size)
      << "remembered states";
  EXPECT_EQ(same_rows({0x41, 0x0a, 0x0a, 0x0a, 0x0a, 0x0e, 32, 0x41, 0x0b, 0x0b, 0x0b, 0x0b}), k_size);
  EXPECT_EQ(same_rows({0x41, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a}), 1u) << "too many of them";
  EXPECT_EQ(same_rows({0x41, 0x0b}), 1u) << "none is remembered";
  EXPECT_EQ(same_rows({0x41, 0x2e, 0, 0x41, 0x2e, 16, 0x41, 0x2e, 0}), k_size - 1) << "pushed arguments";
  EXPECT_EQ(same_rows({0x41, 0x0e, 12}), 1u) << "no whole words";
  EXPECT_EQ(same_rows({0x41, 0x0e, 0x80, 0x80, 32}), 1u) << "a frame of 512 KiB";
  EXPECT_EQ(same_rows({0x41, 0x83, 0x80, 2}), 1u) << "256 words below the CFA";
  EXPECT_EQ(same_rows({0x41, 0x80, 3}), 1u) << "rax";
  EXPECT_EQ(same_rows({0x41, 0x05, 0x80, 1, 3}), 1u) << "no register of the layout";
  EXPECT_EQ(same_rows({0x41, 0x0f, 1, 0x77}), 1u) << "an expression";
  EXPECT_EQ(same_rows({0x41, 0x16, 3, 1, 0x30}), 1u);
  EXPECT_EQ(same_rows({0x41, 0x07, 3}), 1u) << "a register without a value";
  EXPECT_EQ(same_rows({0x41, 0x3f}), 1u) << "no instruction";
  EXPECT_EQ(same_rows({0x41, 0x83}), 1u) << "an operand behind the end";
  EXPECT_EQ(same_rows({0x7f, 0x0e, 16, 0x7f}), k_size) << "beyond the end of the code";
}

/// Every length of the section, and every changed byte: the rows are never others, and nothing behind the end is read.
TEST_F(KnownCiesTest, BrokenBytes) {
  for (const CieSpec& cie : {usual(), absolute()}) {
    const Section section(cie);
    const CompactLayout layout(*arch_);
    const SectionBytes whole = section.bytes.section();
    const std::vector<std::byte> bytes(whole.bytes.begin(), whole.bytes.end());
    std::size_t found = 0;
    std::string what;
    const auto compare = [&](const std::vector<std::byte>& broken) {
      const std::vector<std::byte> exact(broken);  // AddressSanitizer sees its end
      const SectionBytes view_of{exact, whole.address};
      CompactCode code;
      CompactRow row, expected;
      AddrRange range;
      FrameRow again;
      const Addr at = section.begin + 20;
      KnownCies known;
      if (!read_known_fde(view_of, section.fde, known, *arch_, code) || !code.range.contains(at) ||
          !find_compact_row(code, layout, at, row, range))
        return;
      ++found;
      SectionView view(view_of);
      const auto fde = read_fde(view, {.arch = *arch_}, section.fde);
      ASSERT_TRUE(fde && row_at(*fde, {.arch = *arch_}, at, again) && compact(again, layout, expected)) << what;
      EXPECT_TRUE(row == expected && range == again.range && fde->range == code.range);
    };
    for (std::size_t size = 0; size < bytes.size(); ++size)
      compare({bytes.begin(), bytes.begin() + static_cast<long>(size)});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (unsigned value = 0; value < 256; ++value) {
        std::vector<std::byte> changed = bytes;
        changed[i] = static_cast<std::byte>(value);
        what = "byte " + std::to_string(i) + ": " + std::to_string(value);
        compare(changed);
      }
    }
    EXPECT_GT(found, 1000u);
  }
}

}  // namespace
}  // namespace jitunwind::test
