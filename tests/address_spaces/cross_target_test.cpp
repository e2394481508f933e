// AArch64 targets behind accessors on another machine, in both byte orders.
#include <libunwind-aarch64.h>

#include <endian.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/address_spaces/cross_stack.h"
#include "tests/address_spaces/recording_target.h"
#include "tests/libunwind/libunwind_constants.h"

namespace jitunwind::test {
namespace {

constexpr unw_word_t k_code = CrossStack::k_code;
constexpr unw_word_t k_stack = CrossStack::k_stack;
constexpr unw_word_t k_head = 0x20000;

using Halves = std::array<std::uint64_t, 2>;

/// An argument that is passed by value has 10 bytes on this CPU.
unw_fpreg_t fp(std::uint64_t low) {
  unw_fpreg_t value = 0;
  std::memcpy(&value, &low, sizeof low);
  return value;
}

class CrossTarget : public testing::TestWithParam<int> {
 protected:
  CrossTarget() {
    target.memory = stack.memory;
    target.registers = stack.registers;
    target.fp_registers = {
        {UNW_AARCH64_V0, Halves{0xf0, 1}}, {UNW_AARCH64_V8, Halves{0xf8, 2}}, {UNW_AARCH64_V9, Halves{0xf9, 3}}};
    target.find = [this](unw_word_t ip, unw_proc_info_t* info, int) { return stack.find(ip, info); };
    unw_accessors_t accessors = RecordingTarget::accessors();
    space = unw_create_addr_space(&accessors, GetParam());
    target.expected_space = space;
  }
  ~CrossTarget() override {
    EXPECT_EQ(target.mistakes, "");
    EXPECT_TRUE(target.held.empty()) << "not put back";
    unw_destroy_addr_space(space);
  }

  bool big_endian() const { return stack.big_endian; }
  void put(unw_word_t at, const Bytes& bytes) {
    stack.put(at, bytes);
    target.memory = stack.memory;
  }

  int start(unw_cursor_t& cursor) { return unw_init_remote(&cursor, space, &target); }
  static unw_word_t reg(unw_cursor_t& cursor, int number) {
    unw_word_t value = 0;
    EXPECT_EQ(unw_get_reg(&cursor, number, &value), 0) << number;
    return value;
  }
  static Halves fpreg(unw_cursor_t& cursor, int number) {
    unw_fpreg_t value;
    EXPECT_EQ(unw_get_fpreg(&cursor, number, &value), 0) << number;
    Halves halves;
    static_assert(sizeof value == sizeof halves);
    std::memcpy(&halves, &value, sizeof halves);
    return halves;
  }

  CrossStack stack{GetParam() == __BIG_ENDIAN};
  RecordingTarget target;
  unw_addr_space_t space = nullptr;
};

INSTANTIATE_TEST_SUITE_P(ByteOrders, CrossTarget, testing::Values(__LITTLE_ENDIAN, __BIG_ENDIAN, 0),
                         [](const auto& info) {
                           return info.param == 0 ? "usual" : info.param == __BIG_ENDIAN ? "big" : "little";
                         });

// covers: AS03
TEST(CrossTargets, HaveTheByteOrdersOfTheirCpu) {
  unw_accessors_t accessors = RecordingTarget::accessors();
  for (const int order : {0, __LITTLE_ENDIAN, __BIG_ENDIAN}) {
    const unw_addr_space_t made = unw_create_addr_space(&accessors, order);
    EXPECT_NE(made, nullptr) << order;
    unw_destroy_addr_space(made);
  }
  for (const int order : {__PDP_ENDIAN, 4711, -1}) EXPECT_EQ(unw_create_addr_space(&accessors, order), nullptr);
}

// covers: LU06
TEST(CrossTargets, AreNotThisProcess) {
  unw_context_t context{};
  unw_cursor_t cursor;
  EXPECT_EQ(unw_init_local(&cursor, &context), -UNW_EINVAL);
  EXPECT_EQ(unw_init_local2(&cursor, &context, 0), -UNW_EINVAL);
  EXPECT_EQ(unw_init_local2(&cursor, &context, UNW_INIT_SIGNAL_FRAME), -UNW_EINVAL);
}

// covers: RG10 RG11 RG14
TEST(CrossTargets, HaveTheirRegisters) {
  // Numbers of "DWARF for the Arm 64-bit Architecture", 4.1. A frame has no values of the others that the header has.
  std::map<int, std::string> names{{31, "sp"}, {32, "pc"}, {34, "ra_sign_state"}};
  for (int i = 0; i <= 30; ++i) names[i] = "x" + std::to_string(i);
  for (int i = 0; i <= 31; ++i) names[64 + i] = "v" + std::to_string(i);
  for (int number = 0; number <= UNW_REG_LAST; ++number)
    EXPECT_EQ(unw_regname(number), names.contains(number) ? names[number] : "???") << number;
  for (const int none : {-1, 63, 1000000}) EXPECT_STREQ(unw_regname(none), "???");
  EXPECT_TRUE(unw_is_fpreg(UNW_AARCH64_V0));
  EXPECT_TRUE(unw_is_fpreg(UNW_AARCH64_V31));
  for (const int number : {UNW_AARCH64_X0 + 0, UNW_AARCH64_PC + 0, -1, 98}) EXPECT_FALSE(unw_is_fpreg(number));
}

// covers: AC10 AC11
TEST_P(CrossTarget, IsWalkedByTables) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  for (unw_word_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1000 * i + 0x20);
    EXPECT_EQ(reg(cursor, UNW_AARCH64_PC), reg(cursor, UNW_REG_IP));
    EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 32 * i);
    EXPECT_EQ(reg(cursor, UNW_AARCH64_X29), i == 0 ? 0x29 : 0x2900 + i - 1);
    EXPECT_EQ(reg(cursor, UNW_AARCH64_X19), 0x19u);
    unw_word_t scratch = 0;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_AARCH64_X0, &scratch), i == 0 ? 0 : -UNW_EBADREG);
    EXPECT_EQ(unw_step(&cursor) > 0, i < 2) << i;
  }
}

// covers: RG01 AC18
TEST_P(CrossTarget, EveryRegisterIsReadAndWrittenByItsOwnNumber) {
  std::vector<int> numbers{UNW_AARCH64_SP, UNW_AARCH64_PC};
  for (int i = UNW_AARCH64_X0; i <= UNW_AARCH64_X30; ++i) numbers.push_back(i);
  for (const int number : numbers) target.registers[number] = 0x1000u + static_cast<unsigned>(16 * number);
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  for (const int number : numbers) {
    // The number of x30 is that of the frame's IP.
    const int held_by = number == UNW_AARCH64_X30 ? UNW_AARCH64_PC + 0 : number;
    EXPECT_EQ(reg(cursor, number), 0x1000u + static_cast<unsigned>(16 * held_by)) << number;
  }
  for (const int number : numbers) {
    if (number == UNW_AARCH64_X30) continue;
    ASSERT_EQ(unw_set_reg(&cursor, number, 0x8000u + static_cast<unsigned>(16 * number)), 0) << number;
  }
  for (const int number : numbers) {
    if (number == UNW_AARCH64_X30) continue;
    EXPECT_EQ(reg(cursor, number), 0x8000u + static_cast<unsigned>(16 * number)) << number;
    EXPECT_EQ(target.registers[number], 0x8000u + static_cast<unsigned>(16 * number)) << number;
  }
}

/// Described code tells its own end of the stack: x29 may hold anything, including 0.
// covers: LU12
TEST_P(CrossTarget, AFramePointerOf0EndsNoWalk) {
  target.registers[UNW_AARCH64_X29] = 0;
  for (unw_word_t i = 0; i < 3; ++i) target.memory[k_stack + 32 * i] = 0;
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  for (unw_word_t i = 0; i < 2; ++i) {
    ASSERT_GT(unw_step(&cursor), 0);
    EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1000 * (i + 1) + 0x20);
    EXPECT_EQ(reg(cursor, UNW_AARCH64_X29), 0u);
  }
  EXPECT_EQ(unw_step(&cursor), 0);
}

/// The trampoline is mov x8, #139; svc #0. Other code may have all of these bits and more.
// covers: LU21
TEST_P(CrossTarget, ATrampolineIsKnownByAllOfItsBits) {
  constexpr unw_word_t k_unknown = 0x70'0000;
  constexpr std::uint32_t k_mov = 0xd2801168, k_svc = 0xd4000001;
  const auto asked = [&](std::uint32_t first, std::uint32_t second) {
    put(k_unknown, Bytes().u32(first).u32(second));  // instructions are little-endian whatever data is
    target.registers[UNW_AARCH64_PC] = k_unknown;
    unw_cursor_t cursor;
    EXPECT_EQ(start(cursor), 0);
    return unw_is_signal_frame(&cursor);
  };
  EXPECT_GT(asked(k_mov, k_svc), 0);
  EXPECT_EQ(asked(~std::uint32_t{0}, ~std::uint32_t{0}), -UNW_ENOINFO);
  for (unsigned bit = 0; bit < 32; ++bit) {
    EXPECT_EQ(asked(k_mov ^ 1u << bit, k_svc), -UNW_ENOINFO) << bit;
    EXPECT_EQ(asked(k_mov, k_svc ^ 1u << bit), -UNW_ENOINFO) << bit;
  }
}

/// The owner may tell the signature bits of return addresses, for all walks of the space.
// covers: AC16
TEST_P(CrossTarget, BitsThatSignReturnAddressesAreTheOwners) {
  constexpr unw_word_t k_signature = 0x2a80'0000'0000;  // below bit 48
  target.memory[k_stack + 8] |= k_signature;
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), (k_code + 0x1020) | k_signature) << "without his word, those from bit 48 on";

  static unsigned asked;
  asked = 0;
  unw_accessors_t accessors = RecordingTarget::accessors();
  accessors.ptrauth_insn_mask = [](unw_addr_space_t as, void* argument) -> unw_word_t {
    EXPECT_EQ(as, RecordingTarget::of(argument).expected_space);
    ++asked;
    return 0xff7f'ff80'0000'0000;
  };
  unw_destroy_addr_space(space);
  target.expected_space = space = unw_create_addr_space(&accessors, GetParam());
  for (int walk = 0; walk < 2; ++walk) {
    ASSERT_EQ(start(cursor), 0);
    ASSERT_GT(unw_step(&cursor), 0);
    EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
    EXPECT_EQ(reg(cursor, UNW_AARCH64_PC), k_code + 0x1020) << "by the other number, too";
    ASSERT_GT(unw_step(&cursor), 0);
    EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x2020);
  }
  EXPECT_EQ(asked, 1u);
}

/// The list of registered procedures, and its names, in the target's byte order.
// covers: AC07 DY48
TEST_P(CrossTarget, ProceduresItHasRegisteredComeFirst) {
  const auto bytes = [&] { return Bytes::in_order(big_endian()); };
  const auto op = [&](unsigned tag, unsigned reg, std::uint32_t when, std::uint64_t value) {
    return bytes().u8(tag).u8(0).u16(reg).u32(when).u64(value);
  };
  put(k_head, bytes().u32(1).u32(0).u64(k_head + 0x100));
  put(k_head + 0x100, bytes()
                          .u64(0)
                          .u64(0)
                          .u64(k_code)
                          .u64(k_code + 0x40)
                          .u64(0)
                          .u32(UNW_INFO_FORMAT_DYNAMIC)
                          .u32(0)
                          .u64(k_head + 0x200)
                          .u64(0)
                          .u32(0)
                          .u32(0)
                          .u64(k_head + 0x300));
  put(k_head + 0x200, bytes().text("made at run time").fill(8, 0));
  // A frame of 16 bytes more, so that an answer of the table would be wrong.
  put(k_head + 0x300, bytes()
                          .u64(0)
                          .u32(16)
                          .u32(4)
                          .add(op(UNW_DYN_ADD, UNW_AARCH64_SP, 0, static_cast<std::uint64_t>(-48)))
                          .add(op(UNW_DYN_SPILL_SP_REL, UNW_AARCH64_X29, 0, 16))
                          .add(op(UNW_DYN_SPILL_SP_REL, UNW_AARCH64_X30, 0, 24))
                          .add(op(UNW_DYN_STOP, 0, 0, 0)));
  target.list = k_head;
  target.registers[UNW_AARCH64_SP] = k_stack - 16;
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  std::array<char, 32> name;
  ASSERT_EQ(unw_get_proc_name(&cursor, name.data(), name.size(), nullptr), 0);
  EXPECT_STREQ(name.data(), "made at run time");
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 32);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x2020);
}

/// A procedure without regions has no frame: its return address is in the link register.
TEST_P(CrossTarget, ALeafIsLeftByTheLinkRegister) {
  const auto by_table = target.find;
  unw_dyn_proc_info_t leaf{};
  target.find = [&](unw_word_t ip, unw_proc_info_t* info, int need) {
    const int found = by_table(ip, info, need);
    if (found == 0 && info->start_ip == k_code) {
      info->format = UNW_INFO_FORMAT_DYNAMIC;
      info->unwind_info = &leaf;
      info->unwind_info_size = sizeof leaf;
    }
    return found;
  };
  target.registers[UNW_AARCH64_X30] = 0x00ab'0000'0000'0000 | (k_code + 0x1020);  // signed
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x1020);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack);
}

// covers: RG02 AC12 AC18
TEST_P(CrossTarget, FloatingPointRegistersAreThoseOfTheFrame) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  // All registers, and all of their bytes, are known if nothing was called.
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V0), (Halves{0xf0, 1}));
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V8), (Halves{0xf8, 2}));
  ASSERT_GT(unw_step(&cursor), 0);
  unw_fpreg_t value = fp(0);
  EXPECT_EQ(unw_get_fpreg(&cursor, UNW_AARCH64_V0, &value), -UNW_EBADREG) << "scratch";
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V8), (Halves{0xd800, 0})) << "saved: the low half";
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V9), (Halves{0xf9, 3})) << "still in the register";
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V8), (Halves{0xd801, 0}));
  EXPECT_EQ(unw_get_fpreg(&cursor, UNW_AARCH64_V10, &value), -UNW_EBADREG) << "its owner does not have it";
  for (const int none : {UNW_AARCH64_X8 + 0, 63, -1, 1000}) {
    EXPECT_EQ(unw_get_fpreg(&cursor, none, &value), -UNW_EBADREG) << none;
    EXPECT_EQ(unw_set_fpreg(&cursor, none, value), -UNW_EBADREG) << none;
  }
  unw_word_t word = 0;
  EXPECT_EQ(unw_get_reg(&cursor, UNW_AARCH64_V0, &word), -UNW_EBADREG);
}

// covers: RG02 AC12
TEST_P(CrossTarget, FloatingPointRegistersAreWrittenWhereTheyAre) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V0, fp(1)), 0);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V0], (Halves{1, 0}));
  ASSERT_GT(unw_step(&cursor), 0);
  ASSERT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V8, fp(0x111)), 0);
  EXPECT_EQ(target.memory[k_stack + 16], 0x111u);
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V8)[0], 0x111u);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V8][0], 0xf8u);
  ASSERT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V9, fp(0x222)), 0);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V9][0], 0x222u);
  EXPECT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V0, fp(3)), -UNW_EBADREG);
  // The target continues with the written values.
  ASSERT_EQ(unw_resume(&cursor), 0);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V8][0], 0x111u);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V9][0], 0x222u);
}

// covers: RG02 AC12 AC17
TEST_P(CrossTarget, WhatAccessFpregReturnsReachesTheCaller) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  unw_fpreg_t value = fp(0);
  target.failures["fpreg"] = -4711;
  EXPECT_EQ(unw_get_fpreg(&cursor, UNW_AARCH64_V8, &value), -4711);
  EXPECT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V8, value), -4711);
  target.failures["fpreg"] = 1;
  EXPECT_EQ(unw_get_fpreg(&cursor, UNW_AARCH64_V0, &value), -UNW_EUNSPEC);
  unw_get_accessors(space)->access_fpreg = nullptr;
  EXPECT_EQ(unw_get_fpreg(&cursor, UNW_AARCH64_V8, &value), -UNW_EBADREG);
  EXPECT_EQ(unw_set_fpreg(&cursor, UNW_AARCH64_V8, value), -UNW_EREADONLYREG);
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(fpreg(cursor, UNW_AARCH64_V8)[0], 0xd800u) << "from memory";
}

// covers: RS05 RG08
TEST_P(CrossTarget, IsResumedWithTheRegistersOfTheFrame) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_GT(unw_step(&cursor), 0);
  for (int i = 0; i < UNW_NUM_EH_REGS; ++i)
    ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_EH + i, 42u + static_cast<unsigned>(i)), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_IP, k_code + 0x1030), 0);
  ASSERT_EQ(unw_resume(&cursor), 0);
  EXPECT_EQ(target.registers[UNW_AARCH64_PC], k_code + 0x1030);
  EXPECT_EQ(target.registers[UNW_AARCH64_SP], k_stack + 32);
  EXPECT_EQ(target.registers[UNW_AARCH64_X29], 0x2900u);
  EXPECT_EQ(target.registers[UNW_AARCH64_X0], 42u);
  EXPECT_EQ(target.registers[UNW_AARCH64_X3], 45u);
  EXPECT_EQ(target.fp_registers[UNW_AARCH64_V8][0], 0xd800u);
  EXPECT_EQ(target.count("fpreg", true), 1u) << "the others are right already";
  EXPECT_EQ(target.count("resume"), 1u);
}

// covers: RG07
TEST_P(CrossTarget, TheStackPointerIsWritable) {
  unw_cursor_t cursor;
  ASSERT_EQ(start(cursor), 0);
  ASSERT_EQ(unw_set_reg(&cursor, UNW_REG_SP, k_stack + 32), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 32);
  unw_cursor_t resumed = cursor;
  ASSERT_EQ(unw_resume(&resumed), 0);
  EXPECT_EQ(target.registers[UNW_AARCH64_SP], k_stack + 32);
  // The frame is now where its caller's was, and so is what it saved.
  ASSERT_GT(unw_step(&cursor), 0);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x2020);
  EXPECT_EQ(reg(cursor, UNW_AARCH64_X29), 0x2901u);
  EXPECT_EQ(reg(cursor, UNW_REG_SP), k_stack + 64);
}

}  // namespace
}  // namespace jitunwind::test
