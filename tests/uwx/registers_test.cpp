// Registers of a frame: which are requested, when, and where they are.
#include <algorithm>

#include "jitunwind/unwind_core/arch/arch.h"
#include "tests/uwx/uwx_target.h"

namespace jitunwind::test {
namespace {

/// The rows of ThreeFrames read rbp alone; a register that nobody needs is never asked for.
// covers: UX04
TEST(UwxRegisters, AreReadWhenTheyAreNeeded) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.registers[UWX_REG_GR(0)] = 0xa0;
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(target.copies.size(), 0u);
  EXPECT_EQ(target.reg(UWX_REG_GR(0)), 0xa0u) << "a scratch register";
  ASSERT_EQ(target.copied(UWX_COPYIN_REG), 1u);
  EXPECT_EQ(target.copies[0].rem, static_cast<std::uint64_t>(UWX_REG_GR(0)));
  EXPECT_EQ(target.reg(UWX_REG_GR(0)), 0xa0u);
  EXPECT_EQ(target.copied(UWX_COPYIN_REG), 1u) << "known by now";
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.copied(UWX_COPYIN_REG), 2u);
  EXPECT_EQ(target.reg(frames.k_rbx), 0xb3u) << "preserved, and nobody has saved it";
  std::uint64_t value = 0;
  EXPECT_EQ(uwx_get_reg(target.env, UWX_REG_GR(0), &value), UWX_ERR_BADREGID) << "lost in the call";
  EXPECT_EQ(target.copied(UWX_COPYIN_REG), 3u);
}

// covers: UX26
TEST(UwxRegisters, EveryRegisterHasItsId) {
  for (const Arch* arch : all_arches()) {
    UwxTarget target;
    ASSERT_EQ(uwx_set_target(target.env, arch->elf_machine), UWX_OK);
    // Registers are in the target's byte order, as its memory is.
    const auto in_order = [&](std::uint64_t value) { return arch->big_endian ? __builtin_bswap64(value) : value; };
    for (const RegisterInfo& reg : arch->registers)
      if (reg.uwx >= 0) target.registers[static_cast<std::uint64_t>(reg.uwx)] = in_order(0x1000u + reg.dwarf);
    ASSERT_EQ(uwx_init_context(target.env, 4, 2, 0, 0), UWX_OK);
    for (const RegisterInfo& reg : arch->registers) {
      EXPECT_TRUE(reg.reg_class != RegClass::general || reg.uwx == UWX_REG_GR(reg.dwarf)) << reg.name;
      if (reg.uwx < 0 || reg.column < 0 || reg.dwarf == arch->pc || reg.dwarf == arch->sp) continue;
      if (!RegisterFile::has(reg.column)) continue;  // a frame has no value of them
      target.copies.clear();
      EXPECT_EQ(target.reg(reg.uwx), 0x1000u + reg.dwarf) << arch->name << " " << reg.name;
      ASSERT_EQ(target.copies.size(), 1u);
      EXPECT_EQ(target.copies[0].rem, static_cast<std::uint64_t>(reg.uwx));
      EXPECT_EQ(target.copies[0].len, 8);
    }
    EXPECT_EQ(target.reg(UWX_REG_GR(arch->pc)), 4u);
    EXPECT_EQ(target.reg(UWX_REG_GR(arch->sp)), 2u);
  }
  static_assert(UWX_REG_PREDS == 7 && UWX_REG_AR_RNAT == 10 && UWX_REG_AR_UNAT == 11 && UWX_REG_AR_FPSR == 12 &&
                UWX_REG_AR_LC == 13 && UWX_REG_AR_PFS == 14 && UWX_REG_GR(31) == 0x11f && UWX_REG_FR(127) == 0x27f &&
                UWX_REG_BR(7) == 0x307);
}

/// Itanium's registers do not exist here, and the client is not asked for them.
// covers: UX26 UX29
TEST(UwxRegisters, OtherIdsAreBad) {
  UwxTarget target;
  const ThreeFrames frames(target);
  ASSERT_EQ(frames.begin(), UWX_OK);
  std::uint64_t value = 0;
  for (const int id : {UWX_REG_BSP, UWX_REG_CFM, UWX_REG_PFS, UWX_REG_PREDS, UWX_REG_PRIUNAT, UWX_REG_AR_BSPSTORE,
                       UWX_REG_AR_RNAT, UWX_REG_AR_UNAT, UWX_REG_AR_FPSR, UWX_REG_AR_LC, UWX_REG_AR_PFS, 15, 0xff,
                       UWX_REG_GR(17), UWX_REG_FR(2), UWX_REG_BR(0), -1, 1 << 20}) {
    EXPECT_EQ(uwx_get_reg(target.env, id, &value), UWX_ERR_BADREGID) << id;
    EXPECT_EQ(uwx_get_spill_loc(target.env, id, &value), UWX_ERR_BADREGID) << id;
    EXPECT_EQ(uwx_set_reg(target.env, id, 1), UWX_ERR_BADREGID) << id;
  }
  EXPECT_EQ(uwx_get_reg(target.env, UWX_REG_IP, nullptr), UWX_ERR_BADREGID);
  EXPECT_EQ(target.copies.size(), 0u);
}

// covers: UX31
TEST(UwxRegisters, AreSetInTheContext) {
  UwxTarget target;
  const ThreeFrames frames(target);
  target.registers.clear();
  ASSERT_EQ(frames.begin(), UWX_OK);
  ASSERT_EQ(uwx_set_reg(target.env, frames.k_rbp, frames.rbp_of(1)), UWX_OK);
  ASSERT_EQ(uwx_set_reg(target.env, UWX_REG_IP, frames.ip_of(1)), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(1));
  ASSERT_EQ(uwx_set_reg(target.env, UWX_REG_SP, 0x1230), UWX_OK);
  EXPECT_EQ(target.sp(), 0x1230u);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(target.ip(), frames.ip_of(2));
  EXPECT_EQ(target.copied(UWX_COPYIN_REG), 0u);
  std::uint64_t two[2] = {7, 8};
  EXPECT_EQ(uwx_set_fr(target.env, UWX_REG_FR(2), two), UWX_ERR_BADREGID) << "x86-64 preserves none";
  EXPECT_EQ(uwx_set_fr(target.env, UWX_REG_GR(3), two), UWX_ERR_BADREGID);

  UwxTarget arm;
  ASSERT_EQ(uwx_set_target(arm.env, EM_AARCH64), UWX_OK);
  EXPECT_EQ(uwx_set_fr(arm.env, UWX_REG_FR(8), two), UWX_ERR_NOCONTEXT);
  ASSERT_EQ(uwx_init_context(arm.env, 1, 2, 0, 0), UWX_OK);
  ASSERT_EQ(uwx_set_fr(arm.env, UWX_REG_FR(8), two), UWX_OK);
  std::uint64_t read[2] = {9, 9};
  ASSERT_EQ(uwx_get_reg(arm.env, UWX_REG_FR(8), read), UWX_OK);
  EXPECT_EQ(read[0], 7u);
  EXPECT_EQ(read[1], 0u);
  EXPECT_EQ(uwx_set_fr(arm.env, UWX_REG_FR(8), nullptr), UWX_ERR_BADREGID);
}

/// Slots of vector registers are not read either.
// covers: UX30
TEST(UwxRegisters, VectorsAreLeftOut) {
  constexpr std::uint64_t k_sp = 0x7fff'0000;
  UwxTarget target;
  ASSERT_EQ(uwx_set_target(target.env, EM_AARCH64), UWX_OK);
  target.put_word(k_sp, 0x29);
  target.put_word(k_sp + 8, 0x44'0000);
  target.answer = [](const UwxTarget::Asked&) -> Given {
    const auto spill = [](int reg) { return static_cast<std::uint64_t>(UWX_KEY_SPILL(reg)); };
    return {UWX_LKUP_FDESC,
            {UWX_KEY_FSIZE, 32, spill(UWX_REG_RP), UWX_DISP_SPREL(8), spill(UWX_REG_FR(8)), UWX_DISP_SPREL(16)}};
  };
  ASSERT_EQ(uwx_init_context(target.env, 0x40'0000, k_sp, 0, 0), UWX_OK);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  const auto reads_slot = [&] {
    return std::ranges::any_of(target.copies, [&](const auto& copy) { return copy.rem == k_sp + 16; });
  };
  EXPECT_TRUE(reads_slot());
  target.copies.clear();
  EXPECT_EQ(uwx_set_nofr(nullptr), UWX_ERR_NOENV);
  ASSERT_EQ(uwx_set_nofr(target.env), UWX_OK);
  ASSERT_EQ(uwx_init_context(target.env, 0x40'0000, k_sp, 0, 0), UWX_OK);
  std::uint64_t value[2];
  EXPECT_EQ(uwx_get_reg(target.env, UWX_REG_FR(8), value), UWX_ERR_BADREGID);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_FALSE(reads_slot());
}

// covers: UX33
TEST(UwxRegisters, TellWhereTheyAre) {
  UwxTarget target;
  const ThreeFrames frames(target);
  const auto place = [&](int id) {
    std::uint64_t disposition = ~std::uint64_t{0};
    EXPECT_EQ(uwx_get_spill_loc(target.env, id, &disposition), UWX_OK) << id;
    return disposition;
  };
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(place(frames.k_rbp), UWX_DISP_REG(frames.k_rbp));
  EXPECT_EQ(place(UWX_REG_PSP), UWX_DISP_SPPLUS(frames.rbp_of(0) + 16 - frames.k_stack));
  EXPECT_EQ(place(UWX_REG_RP), UWX_DISP_MSTK(frames.rbp_of(0) + 8));
  EXPECT_EQ(UWX_GET_DISP_CODE(place(UWX_REG_RP)), 5);
  EXPECT_EQ(UWX_GET_DISP_ADDR(place(UWX_REG_RP)), frames.rbp_of(0) + 8);
  EXPECT_EQ(UWX_GET_DISP_REGID(place(frames.k_rbp)), frames.k_rbp);
  ASSERT_EQ(uwx_step(target.env), UWX_OK);
  EXPECT_EQ(place(frames.k_rbp), UWX_DISP_MSTK(frames.rbp_of(0)));
  EXPECT_EQ(place(UWX_REG_IP), UWX_DISP_MSTK(frames.rbp_of(0) + 8));
  EXPECT_EQ(place(frames.k_rbx), UWX_DISP_REG(frames.k_rbx));
  EXPECT_EQ(place(UWX_REG_SP), static_cast<std::uint64_t>(UWX_DISP_NONE));
  EXPECT_EQ(uwx_get_spill_loc(target.env, UWX_REG_IP, nullptr), UWX_ERR_BADREGID);
  EXPECT_EQ(UWX_GET_DISP_CODE(UWX_DISP_SPREL(-16)), 2);
  EXPECT_EQ(static_cast<std::int64_t>(UWX_GET_DISP_OFFSET(UWX_DISP_SPREL(-16))), -16);
}

// covers: UX33
TEST(UwxRegisters, AreAlwaysSomething) {
  UwxTarget target;
  const ThreeFrames frames(target);
  int nat = 5;
  EXPECT_EQ(uwx_get_nat(target.env, UWX_REG_GR(3), &nat), UWX_ERR_NOCONTEXT);
  ASSERT_EQ(frames.begin(), UWX_OK);
  EXPECT_EQ(uwx_get_nat(target.env, UWX_REG_GR(3), &nat), UWX_OK);
  EXPECT_EQ(nat, 0);
  EXPECT_EQ(uwx_get_nat(target.env, UWX_REG_GR(30), &nat), UWX_ERR_BADREGID);
  EXPECT_EQ(uwx_get_nat(target.env, UWX_REG_IP, &nat), UWX_ERR_BADREGID);
  EXPECT_EQ(uwx_get_nat(target.env, UWX_REG_GR(3), nullptr), UWX_ERR_BADREGID);
  EXPECT_EQ(uwx_get_nat(nullptr, UWX_REG_GR(3), &nat), UWX_ERR_NOENV);
}

}  // namespace
}  // namespace jitunwind::test
