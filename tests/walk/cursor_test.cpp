// The walk: stepping, ends, errors, cycles, copies; on both CPUs, from rows given as text.
#include "jitunwind/unwind_core/walk/cursor.h"

#include <gtest/gtest.h>

#include "tests/support/fake_space.h"

namespace jitunwind {
namespace {

using test::FakeSpace;
constexpr const char* k_plain = "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]";

std::uint64_t value(const Cursor& cursor, const char* name) {
  const auto got = cursor.get(cursor.space().arch.by_name(name)->dwarf);
  return got ? *got : 0xdead;
}

// covers: LU10
TEST(Cursor, StepsToTheOutermostFrameAndStaysThere) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.rows.add({0x2000, 0x2100}, "cfa=rsp+8 ra=undefined");
  fake.memory.put(0x8000, 77);      // saved rbx
  fake.memory.put(0x8008, 0x2010);  // return address
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"rbx", 5}, {"r12", 12}, {"rax", 1}});
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x2010u);
  EXPECT_EQ(cursor.sp(), 0x8010u);
  EXPECT_EQ(value(cursor, "rbx"), 77u);
  EXPECT_EQ(value(cursor, "r12"), 12u);
  EXPECT_TRUE(cursor.address().is_return_address());
  for (int i = 0; i < 3; ++i) {
    const auto moved = cursor.step();
    ASSERT_TRUE(moved);
    EXPECT_FALSE(*moved);
    EXPECT_EQ(cursor.stop_reason(), StopReason::outermost);
    EXPECT_EQ(cursor.pc(), 0x2010u);
  }
}

// covers: LU12
TEST(Cursor, ReturnAddressZeroEndsTheStack) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.memory.put(0x8000, 77);
  fake.memory.put(0x8008, 0);
  Cursor cursor = fake.cursor(0x1010, 0x8000);
  EXPECT_FALSE(*cursor.step());
  EXPECT_EQ(cursor.stop_reason(), StopReason::outermost);
}

// covers: RG03
TEST(Cursor, ScratchRegistersHaveNoValueInACaller) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.memory.put(0x8000, 77);
  fake.memory.put(0x8008, 0x2010);
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"rax", 1}});
  EXPECT_EQ(value(cursor, "rax"), 1u);
  ASSERT_TRUE(*cursor.step());
  const auto rax = cursor.get(0);
  ASSERT_FALSE(rax);
  EXPECT_EQ(unw_error(rax.error().code), 3);
  EXPECT_EQ(unw_error(cursor.get(9999).error().code), 3);
}

TEST(Cursor, SaysWhereRegistersAreSaved) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, "cfa=rsp+16 rbx=[cfa-16] r13=r14 r15=cfa+32 ra=[cfa-8]");
  fake.memory.put(0x8000, 77);
  fake.memory.put(0x8008, 0x2010);
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"rbx", 5}, {"r12", 12}, {"r14", 14}});
  EXPECT_EQ(cursor.location(3), (SaveLocation{SaveLocation::Kind::reg, 3, 0}));
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.location(3), (SaveLocation{SaveLocation::Kind::memory, k_no_reg, 0x8000}));
  EXPECT_EQ(cursor.location(12), (SaveLocation{SaveLocation::Kind::reg, 12, 0}));
  EXPECT_EQ(cursor.location(13), (SaveLocation{SaveLocation::Kind::reg, 14, 0}));
  EXPECT_EQ(value(cursor, "r13"), 14u);
  EXPECT_EQ(cursor.location(15), SaveLocation{});
  EXPECT_EQ(value(cursor, "r15"), 0x8030u);
  EXPECT_EQ(cursor.location(16), (SaveLocation{SaveLocation::Kind::memory, k_no_reg, 0x8008}));
}

TEST(Cursor, UnknownCodeStopsWithoutLosingTheFrames) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.memory.put(0x8000, 77);
  fake.memory.put(0x8008, 0x9999);
  Cursor cursor = fake.cursor(0x1010, 0x8000);
  ASSERT_TRUE(*cursor.step());
  for (int i = 0; i < 2; ++i) {
    const auto moved = cursor.step();
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code, ErrorCode::no_info);
    EXPECT_EQ(moved.error().at, 0x9999u);
    EXPECT_EQ(cursor.stop_reason(), StopReason::no_info);
    EXPECT_EQ(cursor.pc(), 0x9999u);
    EXPECT_EQ(value(cursor, "rbx"), 77u);
  }
}

TEST(Cursor, ABrokenSourceIsNotTakenForNoSource) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.rows.break_at(0x1010, {ErrorCode::unsupported_version, 0x777, "CIE version"});
  Cursor cursor = fake.cursor(0x1010, 0x8000);
  const auto moved = cursor.step();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error(), (Error{ErrorCode::unsupported_version, 0x777, ""}));
  EXPECT_EQ(cursor.stop_reason(), StopReason::broken);
}

TEST(Cursor, UnreadableStackNamesTheAddress) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  Cursor cursor = fake.cursor(0x1010, 0x123456789abc);
  const auto moved = cursor.step();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error(), (Error{ErrorCode::unreadable_memory, 0x123456789ac4, ""}));
}

TEST(Cursor, AnUnreadableSlotCostsOnlyItsRegister) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.memory.put(0x8008, 0x2010);
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"rbx", 5}});
  ASSERT_TRUE(*cursor.step());
  EXPECT_FALSE(cursor.get(3));
}

// covers: LU13
TEST(Cursor, StandingStillIsAnError) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, "cfa=rsp ra=[cfa]");
  fake.memory.put(0x8000, 0x1010);
  Cursor cursor = fake.cursor(0x1010, 0x8000);
  const auto moved = cursor.step();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::cyclic_frames);
  EXPECT_EQ(unw_error(moved.error().code), 7);
  EXPECT_EQ(cursor.stop_reason(), StopReason::cyclic);
}

TEST(Cursor, ALongCycleEnds) {
  // 1000 frames whose saved rbp leads back to the first.
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
  constexpr Addr base = 0x8000;
  for (Addr i = 0; i < 1000; ++i) {
    fake.memory.put(base + 32 * i, i + 1 < 1000 ? base + 32 * (i + 1) : base);
    fake.memory.put(base + 32 * i + 8, 0x1010);
  }
  Cursor cursor = fake.cursor(0x1020, base - 32, {{"rbp", base}});
  unsigned steps = 0;
  Result<bool> moved = true;
  while ((moved = cursor.step()) && *moved && steps < 100000) ++steps;
  EXPECT_FALSE(moved);
  EXPECT_EQ(cursor.stop_reason(), StopReason::cyclic);
  EXPECT_GE(steps, 1000u);
  EXPECT_LT(steps, 4000u);
}

TEST(Cursor, TheCfaMayMoveDownToAnotherStack) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, "cfa=[rsp] ra=[cfa-8]");
  fake.rows.add({0x2000, 0x2100}, "cfa=rsp+8 ra=undefined");
  fake.memory.put(0x9000, 0x4000);
  fake.memory.put(0x3ff8, 0x2010);
  Cursor cursor = fake.cursor(0x1010, 0x9000);
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.sp(), 0x4000u);
  EXPECT_FALSE(*cursor.step());
}

// covers: LU14
TEST(Cursor, CopiesAreIndependent) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1100}, "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]");
  for (Addr i = 0; i < 20; ++i) {
    fake.memory.put(0x8000 + 16 * i, i);
    fake.memory.put(0x8008 + 16 * i, 0x1011 + i);
  }
  std::vector<Cursor> frames{fake.cursor(0x1010, 0x8000, {{"rbx", 99}})};
  for (int i = 0; i < 20; ++i) {
    Cursor next = frames.back();
    ASSERT_TRUE(*next.step());
    frames.push_back(next);
  }
  for (std::size_t i = 20; i-- > 0;) {
    EXPECT_EQ(frames[i].pc(), 0x1010 + i);
    EXPECT_EQ(frames[i].sp(), 0x8000 + 16 * i);
    EXPECT_EQ(value(frames[i], "rbx"), i == 0 ? 99 : i - 1);
    Cursor again = frames[i];
    ASSERT_TRUE(*again.step());
    EXPECT_EQ(again.pc(), frames[i + 1].pc());
  }
}

// covers: LU21 RG04
TEST(Cursor, BelowASignalFrameAllRegistersAndTheExactPc) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x5000, 0x5010}, "cfa=[rsp+160] rax=[rsp+144] rdi=[rsp+104] rsp=[rsp+160] ra=[rsp+168] signal");
  fake.rows.add({0x1000, 0x1100}, k_plain);
  fake.memory.put(0x8000 + 144, 0xaa);
  fake.memory.put(0x8000 + 104, 0xdd);
  fake.memory.put(0x8000 + 160, 0x7000);
  fake.memory.put(0x8000 + 168, 0x1000);
  Cursor cursor = fake.cursor(0x5001, 0x8000, {}, Cursor::Top::returned_to);
  EXPECT_TRUE(*cursor.is_signal_frame());
  ASSERT_TRUE(*cursor.step());
  EXPECT_FALSE(cursor.address().is_return_address());
  EXPECT_EQ(cursor.pc(), 0x1000u);
  EXPECT_EQ(cursor.sp(), 0x7000u);
  EXPECT_EQ(value(cursor, "rax"), 0xaau);
  EXPECT_EQ(value(cursor, "rdi"), 0xddu);
  EXPECT_FALSE(*cursor.is_signal_frame());
}

// covers: LU07
TEST(Cursor, AReturnAddressIsLookedUpInsideTheCall) {
  FakeSpace fake(arch::x86_64);
  fake.rows.add({0x1000, 0x1010}, "cfa=rsp+16 ra=[cfa-8]");  // ends with a call that does not return
  fake.rows.add({0x1010, 0x1020}, "cfa=rsp+64 ra=[cfa-8]");
  fake.memory.put(0x8008, 0x2010);
  Cursor called = fake.cursor(0x1010, 0x8000, {}, Cursor::Top::returned_to);
  ASSERT_TRUE(*called.step());
  EXPECT_EQ(called.sp(), 0x8010u);
  Cursor interrupted = fake.cursor(0x1010, 0x8000 - 48);
  ASSERT_TRUE(*interrupted.step());
  EXPECT_EQ(interrupted.sp(), 0x8010u);
}

// covers: RG14
TEST(Cursor, AArch64LinkRegisterAndSignature) {
  FakeSpace fake(arch::aarch64);
  fake.rows.add({0x1000, 0x1100}, "cfa=sp");  // leaf: the return address is still in x30
  fake.rows.add({0x2000, 0x2100}, "cfa=sp+32 x29=[cfa-32] x19=[cfa-16] v8=[cfa-8] ra=[cfa-24] ra_sign_state=1");
  fake.rows.add({0x3000, 0x3100}, "cfa=sp");  // claims to be a leaf, but it made a call
  fake.memory.put(0x8000, 0x29);
  fake.memory.put(0x8008, 0x00ab000000003010);  // signed
  fake.memory.put(0x8010, 0x19);
  fake.memory.put(0x8018, 0x88);
  Cursor cursor = fake.cursor(0x1010, 0x8000, {{"x30", 0x2010}, {"x19", 1}, {"x0", 2}});
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x2010u);
  EXPECT_FALSE(cursor.get(30));
  EXPECT_EQ(value(cursor, "x19"), 1u);
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x3010u);
  EXPECT_EQ(value(cursor, "x19"), 0x19u);
  EXPECT_EQ(value(cursor, "v8"), 0x88u);
  const auto lost = cursor.step();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::e_lr);
}

/// Nothing is removed from an address whose signature bits are not known, and it does not give a caller.
// covers: RG14
TEST(Cursor, AArch64SignatureOfUnknownBits) {
  Arch arch = arch::aarch64;
  arch.address_mask = ~Addr{0};
  FakeSpace fake(arch);
  fake.rows.add({0x2000, 0x2100}, "cfa=sp+16 x29=[cfa-16] ra=[cfa-8] ra_sign_state=1");
  for (const Addr upper : {0x0001u, 0x0008u, 0x000fu, 0x0010u, 0x00ffu, 0xff00u}) {
    const Addr signature = upper << 48;
    fake.memory.put(0x8000, 0x29);
    fake.memory.put(0x8008, signature | 0x2010);
    Cursor cursor = fake.cursor(0x2010, 0x8000);
    const auto moved = cursor.step();
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code, ErrorCode::unknown_signature);
    EXPECT_EQ(moved.error().at, signature | 0x2010);
  }
}

/// Programs may have code at addresses with 52 bits, and then it is there.
// covers: RG14
TEST(Cursor, AArch64AddressOf52Bits) {
  Arch arch = arch::aarch64;
  arch.address_mask = ~Addr{0};
  FakeSpace fake(arch);
  fake.rows.add({0x2000, 0x2100}, "cfa=sp+16 x29=[cfa-16] ra=[cfa-8]");
  fake.memory.put(0x8000, 0x29);
  for (const Addr caller : {Addr{0x000f'0000'0000'3010}, Addr{0x001f'0000'0000'3010}}) {
    fake.memory.put(0x8008, caller);
    fake.memory.put(caller - 4, 0x9400'0000, 4);  // bl
    Cursor cursor = fake.cursor(0x2010, 0x8000);
    const auto moved = cursor.step();
    EXPECT_EQ(moved && *moved, caller < Addr{1} << 52);
    if (moved) {
      EXPECT_EQ(cursor.pc(), caller);
    }
  }
}

/// Modules that count how often they are asked.
struct CountedModules final : ModuleFinder {
  mutable int asked = 0;
  bool find(Addr, Module&) const noexcept override { return ++asked, false; }
};

struct TellingMemory final : test::FakeMemory {
  bool tells_executable() const noexcept override { return true; }
};

struct ToldRows final : test::GivenRows {
  using GivenRows::GivenRows;
  bool was_told_of(Addr at) const noexcept override { return at >= 0x1000 && at < 0x3000; }
};

/// The search for a module takes more instructions than that for a registered procedure.
TEST(Cursor, AsksForTheModuleOfNoCodeThatASourceWasToldOf) {
  TellingMemory memory;
  CountedModules modules;
  ToldRows rows(arch::x86_64);
  rows.add({0x1000, 0x3000}, "cfa=rsp+8 ra=[cfa-8]");
  const std::array<const RowSource*, 1> sources{&rows};
  const AddressSpace space{arch::x86_64, memory, modules, sources, {}};
  for (const auto& [at, pc] : {std::pair<Addr, Addr>{0x8000, 0x1010}, {0x8008, 0x2010}, {0x8010, 0x9010}})
    memory.put(at, pc);
  RegisterFile registers;
  registers.set(arch::x86_64.column(arch::x86_64.pc), 0x1000);
  registers.set(arch::x86_64.column(arch::x86_64.sp), 0x8000);
  Cursor cursor(space, registers, Cursor::Top::interrupted);
  ASSERT_TRUE(*cursor.step());
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x2010u);
  EXPECT_EQ(modules.asked, 0);
  EXPECT_FALSE(cursor.step()) << "no source was told of code there";
  EXPECT_GT(modules.asked, 0);
}

}  // namespace
}  // namespace jitunwind
