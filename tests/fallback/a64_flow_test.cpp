// Rows of AArch64 code made by hand that nothing describes: both ways agree, or there is no row.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x1000, k_call = 0x800, k_top = 0x8000;

/// A procedure, and a frame of it that ends at k_top: who called it is behind k_call.
class Procedure {
 public:
  Procedure(std::initializer_list<std::uint32_t> code) {
    Addr at = k_code;
    for (const std::uint32_t word : code) put(at, word), at += 4;
    put(k_call - 4, 0xd503'201f);
    put(k_call, 0x9400'0200);  // bl k_code
    set(arch_.ra, k_call + 4);
  }

  void set(RegNum reg, Addr value) { registers_.set(arch_.column(reg), value); }
  /// Stores the return address below k_top; the link register holds something else then.
  void save_return_address(Addr below, Addr value = k_call + 4) {
    memory_.put(k_top - below, value);
    set(arch_.ra, 0);
  }
  /// Returns the row at an instruction, by its number, with so many bytes on the stack; "" if nothing is known.
  std::string row(std::size_t number, Addr on_stack, bool is_return_address = false) {
    const Addr pc = k_code + 4 * number;
    set(arch_.sp, k_top - on_stack);
    MemoryWindow window;
    Lookup lookup(space_, is_return_address ? CodeAddress::returned_to(pc) : CodeAddress::interrupted(pc), window,
                  &registers_);
    FrameRow row;
    const Found found = followed_code_source().find_row(lookup, row);
    EXPECT_TRUE(found);
    key = row.signing_key;
    return found && *found ? to_text(row, arch_) : "";
  }

  SigningKey key = SigningKey::any;

 private:
  void put(Addr at, std::uint32_t word) { memory_.put_bytes(at, std::as_bytes(std::span(&word, 1))); }

  const Arch& arch_ = arch::aarch64;
  FakeMemory memory_;
  NoModules modules_;
  AddressSpace space_{arch_, memory_, modules_, {}, {}};
  RegisterFile registers_;
};

/// stp x29,x30,[sp,#-64]!; mov x29,sp; stp x19,x20,[sp,#16]; stp d8,d9,[sp,#32]; str x21,[sp,#48]; mov x19,x0; bl;
/// fmov d8,d0; and back.
Procedure with_pairs() {
  return {0xa9bc7bfd, 0x910003fd, 0xa90153f3, 0x6d0227e8, 0xf9001bf5, 0xaa0003f3, 0x97fffffa,
          0x1e604008, 0xf9401bf5, 0x6d4227e8, 0xa94153f3, 0xa8c47bfd, 0xd65f03c0};
}

// covers: LU20 RG14
TEST(A64Flow, KnowsTheFrameAtEachInstruction) {
  EXPECT_EQ(with_pairs().row(0, 0), "cfa=sp");
  EXPECT_EQ(with_pairs().row(12, 0), "cfa=sp");
  const auto inside = [](std::size_t number, bool is_return_address = false) {
    Procedure p = with_pairs();
    p.save_return_address(56);
    p.set(29, k_top - 64);
    return p.row(number, 64, is_return_address);
  };
  EXPECT_EQ(inside(1), "cfa=sp+64 x29=[cfa-64] ra=[cfa-56]");
  EXPECT_EQ(inside(3), "cfa=sp+64 x19=[cfa-48] x20=[cfa-40] x29=[cfa-64] ra=[cfa-56]");
  const std::string all =
      "cfa=sp+64 x19=[cfa-48] x20=[cfa-40] x21=[cfa-16] x29=[cfa-64] v8=[cfa-32] v9=[cfa-24] ra=[cfa-56]";
  for (const std::size_t number : {5u, 6u, 7u, 8u}) EXPECT_EQ(inside(number), all) << number;
  EXPECT_EQ(inside(7, true), all);
  EXPECT_EQ(inside(10), "cfa=sp+64 x19=[cfa-48] x20=[cfa-40] x29=[cfa-64] ra=[cfa-56]");
}

TEST(A64Flow, KnowsNothingWhereThereIsDoubt) {
  Procedure elsewhere = with_pairs();
  elsewhere.save_return_address(40);
  EXPECT_EQ(elsewhere.row(7, 64), "") << "no return address where it was saved";
  Procedure moved = with_pairs();
  moved.save_return_address(56);
  EXPECT_EQ(moved.row(7, 80), "") << "SP is elsewhere";
  Procedure contradicted = with_pairs();
  contradicted.save_return_address(56);
  contradicted.set(29, k_top - 48);
  EXPECT_EQ(contradicted.row(7, 64), "") << "the frame pointer says something else";
  Procedure not_called = with_pairs();
  not_called.save_return_address(56, k_code + 7 * 4);
  not_called.set(29, k_top - 64);
  EXPECT_EQ(not_called.row(7, 64, true),
            "cfa=sp+64 x19=[cfa-48] x20=[cfa-40] x21=[cfa-16] x29=[cfa-64] v8=[cfa-32] "
            "v9=[cfa-24] ra=[cfa-56]")
      << "called by itself";
  // stp x29,x30,[sp,#-64]!; nop; ldr x30,[sp,#24]; add sp,sp,#64; ret
  Procedure loads_another{0xa9bc7bfd, 0xd503201f, 0xf9400ffe, 0x910103ff, 0xd65f03c0};
  loads_another.save_return_address(56);
  loads_another.save_return_address(40);
  EXPECT_EQ(loads_another.row(1, 64), "") << "not the word where it was saved";
  Procedure other = {0xd503201f, 0xaa0903fe, 0xd65f03c0};  // nop; mov x30,x9; ret
  EXPECT_EQ(other.row(0, 0), "cfa=sp") << "by the way from the entry, SP and the link register are as there";
  EXPECT_EQ(other.row(1, 0), "cfa=sp") << "and here";
  EXPECT_EQ(other.row(2, 0), "cfa=sp") << "it returns by the register";
  other.set(30, k_call + 8);
  EXPECT_EQ(other.row(2, 0), "") << "which is not behind a call";
}

// paciasp; sub sp,sp,#4096; sub sp,sp,#32; stp x29,x30,[sp]; mov x29,sp; sub sp,sp,x0; bl; mov sp,x29; and back; retaa
TEST(A64Flow, KnowsVariableAndSignedFrames) {
  const auto procedure = [] {
    return Procedure{0xd503233f, 0xd14007ff, 0xd10083ff, 0xa9007bfd, 0x910003fd, 0xcb2063ff,
                     0x97ffffed, 0x910003bf, 0xa9407bfd, 0x910083ff, 0x914007ff, 0xd65f0bff};
  };
  constexpr Addr k_signature = Addr{0x2a} << 48;
  EXPECT_EQ(procedure().row(0, 0), "cfa=sp");
  Procedure grown = procedure();
  grown.set(30, (k_call + 4) | k_signature);
  EXPECT_EQ(grown.row(2, 4096), "cfa=sp+4096 ra_sign_state=1");
  EXPECT_EQ(grown.key, SigningKey::a);
  for (const std::size_t number : {6u, 7u}) {
    Procedure variable = procedure();
    variable.save_return_address(4128 - 8, (k_call + 4) | k_signature);
    variable.set(29, k_top - 4128);
    EXPECT_EQ(variable.row(number, 4128 + 320, number == 7),
              "cfa=x29+4128 x29=[cfa-4128] ra=[cfa-4120] ra_sign_state=1");
  }
  Procedure back = procedure();
  back.set(30, (k_call + 4) | k_signature);
  EXPECT_EQ(back.row(11, 0), "cfa=sp ra_sign_state=1");
}

// pacibsp; sub sp,sp,#16; nop; add sp,sp,#16; autibsp; ret
TEST(A64Flow, KnowsWhichKeyHasSigned) {
  Procedure p{0xd503237f, 0xd10043ff, 0xd503201f, 0x910043ff, 0xd50323ff, 0xd65f03c0};
  EXPECT_EQ(p.row(2, 16), "cfa=sp+16 ra_sign_state=1");
  EXPECT_EQ(p.key, SigningKey::b);
  EXPECT_EQ(p.row(4, 0), "cfa=sp ra_sign_state=1");
  EXPECT_EQ(p.row(5, 0), "cfa=sp");
}

// cbz x0,1f; paciasp; stp x29,x30,[sp,#-32]!; str x19,[sp,#16]; sub sp,sp,#0x860; mov x19,x0; bl; add sp,sp,#0x860;
// ldr x19,[sp,#16]; ldp x29,x30,[sp],#32; autiasp; 1: ret; and a call of other code.
TEST(A64Flow, KnowsASignedFrameThatIsNotOnEachWay) {
  const auto row = [](std::size_t number, Addr on_stack, bool is_from_elsewhere = false) {
    Procedure p{0xb4000160, 0xd503233f, 0xa9be7bfd, 0xf9000bf3, 0xd12183ff, 0xaa0003f3, 0x97ffffea,
                0x912183ff, 0xf9400bf3, 0xa8c27bfd, 0xd50323bf, 0xd65f03c0, 0x97ffffe4};
    if (on_stack != 0) p.save_return_address(24);
    if (is_from_elsewhere) p.set(30, k_code + 13 * 4);
    return p.row(number, on_stack);
  };
  for (const bool is_from_elsewhere : {false, true}) {
    for (const std::size_t number : {0u, 1u, 11u}) EXPECT_EQ(row(number, 0, is_from_elsewhere), "cfa=sp") << number;
    for (const std::size_t number : {2u, 10u})
      EXPECT_EQ(row(number, 0, is_from_elsewhere), "cfa=sp ra_sign_state=1") << number;
  }
  EXPECT_EQ(row(4, 32), "cfa=sp+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24] ra_sign_state=1");
  for (const std::size_t number : {5u, 6u, 7u})
    EXPECT_EQ(row(number, 0x880), "cfa=sp+2176 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24] ra_sign_state=1") << number;
}

// The procedure's caller need not be known, only that it returns: paciasp or pacibsp; nop; autiasp, ret or retab; and a
// call of other code.
TEST(A64Flow, KnowsTheKeyOfASignatureFromItsEnd) {
  Procedure a{0xd503233f, 0xd503201f, 0xd50323bf, 0xd65f03c0, 0x97ffffe4};
  a.set(30, k_code + 5 * 4);
  EXPECT_EQ(a.row(1, 0), "cfa=sp ra_sign_state=1");
  EXPECT_EQ(a.key, SigningKey::a);
  EXPECT_EQ(a.row(3, 0), "cfa=sp");
  Procedure b{0xd503237f, 0xd503201f, 0xd65f0fff, 0x97ffffe4};
  b.set(30, k_code + 4 * 4);
  EXPECT_EQ(b.row(1, 0), "cfa=sp ra_sign_state=1");
  EXPECT_EQ(b.key, SigningKey::b);
  EXPECT_EQ(b.row(0, 0), "cfa=sp");
  // paciasp; bl; nop; retaa
  Procedure behind_call{0xd503233f, 0x97ffffe4, 0xd503201f, 0xd65f0bff};
  behind_call.set(30, k_code + 2 * 4);
  EXPECT_EQ(behind_call.row(2, 0), "") << "the link register has what the call has left";
}

// stp x29,x30,[sp,#-64]!; cbz x0,2f; stp x19,x20,[sp,#16]; bl; 1: stp x19,x20,[sp,#16]; bl; ldr x19,[sp,#40];
// ldp x19,x20,[sp,#16]; ldp x29,x30,[sp],#64; ret; 2: b 1b. No call comes back.
TEST(A64Flow, DoesNotTakeAValueForTheCallersThatTheCodeIsAboutToSave) {
  Procedure p{0xa9bc7bfd, 0xb4000120, 0xa90153f3, 0x97ffffed, 0xa90153f3, 0x97ffffeb,
              0xf94017f3, 0xa94153f3, 0xa8c47bfd, 0xd65f03c0, 0x17fffffa};
  p.save_return_address(56);
  EXPECT_EQ(p.row(4, 64), "cfa=sp+64 x19=undefined x20=undefined x29=[cfa-64] ra=[cfa-56]");
}

// stp x29,x30,[sp,#-64]!; str x19,[sp,#40]; str x19,[sp,#16]; mov x19,x0; str x0,[sp,#40]; bl; ldr x19,[sp,#16];
// ldp x29,x30,[sp],#64; ret
TEST(A64Flow, DoesNotKnowARegisterThatIsStoredTwice) {
  const auto row = [](std::size_t number) {
    Procedure p{0xa9bc7bfd, 0xf90017f3, 0xf9000bf3, 0xaa0003f3, 0xf90017e0,
                0x97ffffef, 0xf9400bf3, 0xa8c47bfd, 0xd65f03c0};
    p.save_return_address(56);
    return p.row(number, 64);
  };
  for (const std::size_t number : {4u, 5u})
    EXPECT_EQ(row(number), "cfa=sp+64 x19=undefined x29=[cfa-64] ra=[cfa-56]") << number;
}

TEST(A64Flow, KnowsAReturnAddressThatIsCopiedAsLongAsItIsElsewhere) {
  const auto in_x15 = [](std::size_t number) {  // mov x15,x30; nop; bl; nop; ret x15
    Procedure p{0xaa1e03ef, 0xd503201f, 0x97ffffee, 0xd503201f, 0xd65f01e0};
    if (number > 2) p.set(30, k_code + 3 * 4);
    return p.row(number, 0);
  };
  for (const std::size_t number : {0u, 1u, 2u}) EXPECT_EQ(in_x15(number), "cfa=sp") << number;
  for (const std::size_t number : {3u, 4u}) EXPECT_EQ(in_x15(number), "") << number;
  // stp x29,x30,[sp,#-16]!; bl; mov x0,x30; bl; mov x30,x0; ldp x29,x30,[sp],#16; ret
  Procedure saved{0xa9bf7bfd, 0x97ffffef, 0xaa1e03e0, 0x97ffffed, 0xaa0003fe, 0xa8c17bfd, 0xd65f03c0};
  saved.save_return_address(8);
  for (const std::size_t number : {2u, 3u, 4u, 5u}) {
    saved.set(30, k_code + (number < 4 ? 2 : 4) * 4);
    EXPECT_EQ(saved.row(number, 16), "cfa=sp+16 x29=[cfa-16] ra=[cfa-8]") << number;
  }
}

// stp x29,x30,[sp,#-16]!; ldp x29,x30,[sp],#16; br x16
TEST(A64Flow, LeavesByAJumpBehindItsFrame) {
  Procedure p{0xa9bf7bfd, 0xa8c17bfd, 0xd61f0200};
  p.save_return_address(8);
  EXPECT_EQ(p.row(1, 16), "cfa=sp+16 x29=[cfa-16] ra=[cfa-8]");
}

}  // namespace
}  // namespace jitunwind::test
