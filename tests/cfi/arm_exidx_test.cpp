// .ARM.exidx made by hand: every instruction in both byte orders, and entries that no compiler writes.
#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/support/cfi_assembler.h"
#include "tests/support/exidx_row.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

/// A table of one entry at 0x8000 for the code from 0x9000 on, with its instructions in a word, or at 0x8100.
struct OneEntry {
  OneEntry(bool big_endian, std::uint32_t word, std::initializer_list<std::uint32_t> extab = {})
      : arch(with_byte_order(arch::arm, big_endian)), bytes(Bytes::in_order(big_endian)), memory(big_endian) {
    bytes.u32(0x1000).u32(word);
    Addr at = 0x8100;
    for (const std::uint32_t w : extab) memory.put(at, w, 4), at += 4;
  }
  std::string row(Addr pc = 0x9000) const { return exidx_row({bytes.vector(), 0x8000}, memory, pc, arch); }

  Arch arch;
  Bytes bytes;
  FakeMemory memory;
};

// covers: XP04
TEST(ArmExidx, Instructions) {
  for (const bool big : {false, true}) {
    EXPECT_EQ(OneEntry(big, 0x8001'a8b0).row(), "cfa=sp+16 r4=[cfa-8] ra=[cfa-4]");
    EXPECT_EQ(OneEntry(big, 0x8097'84'08).row(), "cfa=r7+8 r7=[cfa-8] ra=[cfa-4]") << "vsp=r7; pop r7, r14";
    EXPECT_EQ(OneEntry(big, 0x8080'08'b0).row(), "cfa=sp+4 r7=[cfa-4]") << "pop r7: the return address is in lr";
    EXPECT_EQ(OneEntry(big, 0x8088'01'b0).row(), "cfa=sp+8 r4=[cfa-8] ra=[cfa-4]") << "pop r4, pc";
    EXPECT_EQ(OneEntry(big, 0x80b2'01'b0).row(), "cfa=sp+520");
    EXPECT_EQ(OneEntry(big, 0x80d1'b0'b0).row(), "cfa=sp+16 d8=[cfa-16] d9=[cfa-8]");
    EXPECT_EQ(OneEntry(big, 0x80b8'b0'b0).row(), "cfa=sp+12 d8=[cfa-12]");
    EXPECT_EQ(OneEntry(big, 0x80b1'0f'b0).row(), "cfa=sp+16 r0=[cfa-16] r1=[cfa-12] r2=[cfa-8] r3=[cfa-4]");
    EXPECT_EQ(OneEntry(big, 0x80c8'01'b0).row(), "cfa=sp+16 d16=[cfa-16] d17=[cfa-8]");
    EXPECT_EQ(OneEntry(big, 0x80c9'80'b0).row(), "cfa=sp+8 d8=[cfa-8]");
    EXPECT_EQ(OneEntry(big, 1).row(), "cfa=sp ra=undefined");
    EXPECT_EQ(OneEntry(big, 0x8086'00b0).row(), "cfa=[sp] ra=[sp+4]") << "pop sp, lr";
    // The entries in .ARM.extab use personality routine 1 with one more word, and a routine of the program's own.
    EXPECT_EQ(OneEntry(big, 0xfc, {0x8101'0184, 0x00b0'b0b0}).row(), "cfa=sp+12 ra=[cfa-4]");
    EXPECT_EQ(OneEntry(big, 0xfc, {0x1000, 0x0001'a8b0}).row(), "cfa=sp+16 r4=[cfa-8] ra=[cfa-4]");
  }
  EXPECT_EQ(OneEntry(false, 1).row(0x8fff), "no row") << "before the first";
}

TEST(ArmExidx, WhatNoCompilerWritesIsRefused) {
  for (const std::uint32_t word : {0x8080'00b0u, 0x809d'b0b0u, 0x809f'b0b0u, 0x80a0'97b0u, 0x80b1'00b0u, 0x80b1'10b0u,
                                   0x80c0'b0b0u, 0x80c8'ffb0u, 0x80ff'b0b0u, 0x8300'0000u})
    EXPECT_EQ(OneEntry(false, word).row(), "error bad_encoding") << std::hex << word;
  EXPECT_EQ(OneEntry(false, 0xfc).row(), "error unreadable_memory");
  EXPECT_EQ(OneEntry(false, 0xfc, {0x81ff'0101}).row(), "error unreadable_memory") << "255 words, and none is there";
}

}  // namespace
}  // namespace jitunwind::test
