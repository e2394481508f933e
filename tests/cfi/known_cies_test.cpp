// CIEs that are kept by their bytes: rows are those of the general way, and nothing is kept that depends on more.
#include <gtest/gtest.h>

#include "tests/cfi/rows_of.h"
#include "unwind_core/sources/known_cies.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_size = 64;
const Bytes k_code{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x50, 0x0c, 7, 8, 0xc6, 0x41, 0x0b};

CieSpec cie_of(const char* augmentation, const Bytes& data, const Bytes& instructions = {0x0c, 7, 8, 0x90, 1, 0, 0}) {
  return {.augmentation = augmentation, .augmentation_data = data, .instructions = instructions};
}
CieSpec usual() { return cie_of("zR", {0x1b}); }
/// `personality`: how far it is away.
CieSpec with_handlers(std::uint32_t personality) {
  return cie_of("zPLR", Bytes{0x9b}.u32(personality).u8(0x1b).u8(0x1b));
}

/// A section whose FDEs are for code right behind it.
struct Section {
  CfiSection bytes;
  Addr fde = 0;
  Addr begin = 0;

  explicit Section(const CieSpec& cie, const Bytes& data = {}, const Bytes& instructions = k_code, Addr at = 0x10000)
      : bytes(at), begin(at + 0x1000) {
    const Addr cie_at = bytes.cie(cie);
    const Addr code_at = bytes.here() + 8;
    fde = bytes.fde(cie_at, Bytes{}.u32(begin - code_at).u32(k_size).block(data).add(instructions));
    bytes.data().fill(32, 0);
  }
};

class KnownCiesTest : public testing::Test {
 protected:
  KnownCies known_;
  const Arch* arch_ = &arch::x86_64;

  CfiContext context() { return {.arch = *arch_, .known = &known_}; }
  /// As a walk that finds nothing known.
  void read_in_general(const Section& section) {
    SectionView view(section.bytes.section());
    const auto fde = read_fde(view, context(), section.fde);
    ASSERT_TRUE(fde);
    FrameRow row;
    ASSERT_TRUE(row_at(*fde, context(), section.begin, row));
  }
  bool is_known(const Section& section) {
    CfiCode code;
    return read_known_fde(section.bytes.section(), section.fde, section.begin, context(), code);
  }
  /// All rows are the same in both ways.
  void expect_same_rows(const Section& section) {
    SectionView view(section.bytes.section());
    const auto fde = read_fde(view, {.arch = *arch_}, section.fde);
    ASSERT_TRUE(fde);
    for (Addr at = section.begin; at < section.begin + k_size; ++at) {
      CfiCode code;
      ASSERT_TRUE(read_known_fde(section.bytes.section(), section.fde, at, context(), code));
      FrameRow row, again;
      ASSERT_TRUE(row_at(*fde, {.arch = *arch_}, at, row));
      ASSERT_TRUE(find_row_quickly(code, context(), at, again));
      ASSERT_TRUE(row == again && row.range == again.range) << at;
    }
  }
};

TEST_F(KnownCiesTest, OfTheSameBytesAnywhere) {
  const Section first(usual());
  EXPECT_FALSE(is_known(first));
  read_in_general(first);
  EXPECT_TRUE(is_known(first));
  const Section elsewhere(usual(), {}, {0x44, 0x0e, 32, 0x83, 4}, 0x7000'0000);
  EXPECT_TRUE(is_known(elsewhere));
  expect_same_rows(first);
  expect_same_rows(elsewhere);
}

TEST_F(KnownCiesTest, WhateverThePersonality) {
  const Bytes lsda{1, 2, 3, 4};
  const Section first(with_handlers(0x100), lsda);
  read_in_general(first);
  const Section other(with_handlers(0xffff'0000), lsda);
  EXPECT_TRUE(is_known(other));
  expect_same_rows(first);
  expect_same_rows(other);
  EXPECT_FALSE(is_known(Section(with_handlers(0x100), {})));
  EXPECT_FALSE(is_known(Section(with_handlers(0x100), {1, 2, 3, 4, 5})));
}

TEST_F(KnownCiesTest, NotOthers) {
  read_in_general(Section(usual()));
  CieSpec factor = usual();
  factor.data_alignment = -4;
  EXPECT_FALSE(is_known(Section(factor)));
  EXPECT_FALSE(is_known(Section(cie_of("zS", {}))));
  EXPECT_FALSE(is_known(Section(cie_of("zR", {0x1b}, {0x0c, 7, 16, 0x90, 1, 0, 0}))));
  arch_ = &arch::aarch64;
  EXPECT_FALSE(is_known(Section(usual())));
}

TEST_F(KnownCiesTest, OnlyWhatItCovers) {
  const Section section(usual());
  read_in_general(section);
  CfiCode code;
  const auto covers = [&](Addr pc) {
    return read_known_fde(section.bytes.section(), section.fde, pc, context(), code);
  };
  EXPECT_TRUE(covers(section.begin) && covers(section.begin + k_size - 1));
  EXPECT_FALSE(covers(section.begin - 1) || covers(section.begin + k_size));
}

TEST_F(KnownCiesTest, OfASignalFrame) {
  const Section section(cie_of("zRS", {0x1b}, {0x0c, 7, 8, 0x90, 1, 0}));
  read_in_general(section);
  expect_same_rows(section);
}

// Expressions are bytes of a module that may go away.
TEST_F(KnownCiesTest, NotWithExpressions) {
  const Section cfa(cie_of("zR", {0x1b}, {0x0f, 3, 0x77, 8, 6, 0x90, 1}), {}, {0x41});
  read_in_general(cfa);
  EXPECT_FALSE(is_known(cfa));
  const Section rule(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x10, 16, 2, 0x77, 0, 0}), {}, {0x41});
  SectionView view(rule.bytes.section());
  read_in_general(rule);
  EXPECT_TRUE(is_known(rule));  // rsp + 0 is a plain rule
  const Section computed(cie_of("zR", {0x1b}, {0x0c, 7, 8, 0x10, 16, 2, 0x30, 6, 0}), {}, {0x41});
  read_in_general(computed);
  EXPECT_FALSE(is_known(computed));
}

TEST_F(KnownCiesTest, NotWhereThePlaceCounts) {
  // A personality aligned to a word: what is behind it moves with the CIE.
  const Section section(cie_of("zPR", Bytes{0x50}.fill(7, 0).u64(0x1000).u8(0x1b), {0x0c, 7, 8, 0}), {}, {0x41});
  SectionView view(section.bytes.section());
  if (const auto fde = read_fde(view, context(), section.fde)) {
    FrameRow row;
    (void)row_at(*fde, context(), section.begin, row);
  }
  EXPECT_FALSE(is_known(section));
  const Section absolute(cie_of("zR", {0x00}));
  EXPECT_FALSE(is_known(absolute));
}

TEST_F(KnownCiesTest, EightOfThem) {
  for (unsigned i = 0; i < 9; ++i) {
    const Section section(cie_of("zR", {0x1b}, {0x0c, 7, 8 + 8 * i, 0x90, 1, 0, 0}));
    read_in_general(section);
    read_in_general(section);
    EXPECT_EQ(is_known(section), i < 8) << i;
  }
  EXPECT_TRUE(is_known(Section(usual())));
}

/// Every length of the section, and every byte of it changed: never other rows, and nothing behind the end is read.
TEST_F(KnownCiesTest, BrokenBytes) {
  const Section section(usual());
  read_in_general(section);
  const SectionBytes whole = section.bytes.section();
  const std::vector<std::byte> bytes(whole.bytes.begin(), whole.bytes.end());
  const Addr address = section.bytes.section().address;
  const auto compare = [&](const std::vector<std::byte>& broken) {
    const std::vector<std::byte> exact(broken);  // AddressSanitizer sees its end
    const SectionBytes view_of{exact, address};
    CfiCode code;
    FrameRow row, again;
    if (!read_known_fde(view_of, section.fde, section.begin, context(), code) ||
        !find_row_quickly(code, context(), section.begin, row))
      return;
    SectionView view(view_of);
    const auto fde = read_fde(view, {.arch = *arch_}, section.fde);
    ASSERT_TRUE(fde && row_at(*fde, {.arch = *arch_}, section.begin, again));
    EXPECT_TRUE(row == again && row.range == again.range && fde->range == code.range);
  };
  for (std::size_t size = 0; size < bytes.size(); ++size)
    compare({bytes.begin(), bytes.begin() + static_cast<long>(size)});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (unsigned value = 0; value < 256; ++value) {
      std::vector<std::byte> changed = bytes;
      changed[i] = static_cast<std::byte>(value);
      compare(changed);
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
