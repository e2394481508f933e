// Every operation of DWARF expressions that can occur in call frame information, and every way to get one wrong.
#include "jitunwind/unwind_core/rows/dwarf_expression.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/cfi_assembler.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

constexpr std::uint64_t k_min = std::uint64_t{1} << 63;
constexpr std::uint64_t minus(std::uint64_t value) { return ~value + 1; }

/// A CPU like x86-64 with words of another size and order.
Arch variant(std::uint8_t word_size, bool big_endian) {
  Arch arch = arch::x86_64;
  arch.word_size = word_size;
  arch.big_endian = big_endian;
  return arch;
}

/// rbp (6) = 0x1000, rsp (7) = 0x2000, r15 = -1; nothing else known. [0x1000]: 88 99 aa bb cc dd ee ff; 0x2000 is not.
class Expressions : public testing::Test {
 protected:
  Expressions() {
    registers_.set(6, 0x1000);
    registers_.set(7, 0x2000);
    registers_.set(15, ~std::uint64_t{0});
    memory_.put_bytes(0x1000, Bytes{0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}.vector());
  }

  Result<std::uint64_t> run(const Bytes& bytes, std::optional<std::uint64_t> initial = std::nullopt,
                            const Arch& arch = arch::x86_64) {
    return evaluate(bytes.vector(), {arch, registers_, memory_, window_, initial});
  }

  RegisterFile registers_;
  FakeMemory memory_;
  MemoryWindow window_;
};

TEST_F(Expressions, Values) {
  const struct {
    const char* what;
    Bytes bytes;
    std::uint64_t value;
  } cases[] = {
      {"lit0", {0x30}, 0},
      {"lit31", {0x4f}, 31},
      {"addr", {0x03, 1, 2, 3, 4, 5, 6, 7, 8}, 0x0807060504030201},
      {"const1u", {0x08, 0xff}, 0xff},
      {"const1s", {0x09, 0xff}, minus(1)},
      {"const2u", {0x0a, 0xfe, 0xff}, 0xfffe},
      {"const2s", {0x0b, 0xfe, 0xff}, minus(2)},
      {"const4u", {0x0c, 0xfd, 0xff, 0xff, 0xff}, 0xfffffffd},
      {"const4s", {0x0d, 0xfd, 0xff, 0xff, 0xff}, minus(3)},
      {"const8u", {0x0e, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, minus(4)},
      {"const8s", {0x0f, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, minus(4)},
      {"constu", {0x10, 0xe5, 0x8e, 0x26}, 624485},
      {"constu, the largest", Bytes{0x10}.uleb(~std::uint64_t{0}), ~std::uint64_t{0}},
      {"constu, padded", {0x10, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 5},
      {"consts", {0x11, 0xc0, 0xbb, 0x78}, minus(123456)},
      {"consts, the smallest", Bytes{0x11}.sleb(INT64_MIN), k_min},
      {"consts, padded", {0x11, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, minus(2)},
      {"breg6 - 8", {0x76, 0x78}, 0xff8},
      {"breg7 + 160", {0x77, 0xa0, 1}, 0x20a0},
      {"breg15", {0x7f, 0}, minus(1)},
      {"bregx 6 + 8", {0x92, 6, 8}, 0x1008},
      {"deref", {0x76, 0, 0x06}, 0xffeeddccbbaa9988},
      {"deref_size 1", {0x76, 0, 0x94, 1}, 0x88},
      {"deref_size 2", {0x76, 0, 0x94, 2}, 0x9988},
      {"deref_size 4", {0x76, 0, 0x94, 4}, 0xbbaa9988},
      {"deref_size 8", {0x76, 0, 0x94, 8}, 0xffeeddccbbaa9988},
      {"dup", {0x32, 0x12, 0x22}, 4},
      {"drop", {0x32, 0x33, 0x13}, 2},
      {"over: 5 6 5", {0x35, 0x36, 0x14}, 5},
      {"pick 0", {0x35, 0x36, 0x37, 0x15, 0}, 7},
      {"pick 2", {0x35, 0x36, 0x37, 0x15, 2}, 5},
      {"swap: 6 5", {0x35, 0x36, 0x16, 0x1c}, 1},
      {"rot: 5 6 7 -> 7 5 6, top", {0x35, 0x36, 0x37, 0x17}, 6},
      {"rot, second", {0x35, 0x36, 0x37, 0x17, 0x13}, 5},
      {"rot, third", {0x35, 0x36, 0x37, 0x17, 0x13, 0x13}, 7},
      {"abs of -5", {0x09, 0xfb, 0x19}, 5},
      {"abs of 5", {0x35, 0x19}, 5},
      {"abs of the smallest", Bytes{0x11}.sleb(INT64_MIN).u8(0x19), k_min},
      {"and", {0x3c, 0x3a, 0x1a}, 8},
      {"or", {0x3c, 0x33, 0x21}, 15},
      {"xor", {0x3c, 0x3a, 0x27}, 6},
      {"not", {0x30, 0x20}, minus(1)},
      {"neg", {0x35, 0x1f}, minus(5)},
      {"plus wraps", {0x7f, 0, 0x35, 0x22}, 4},
      {"plus_uconst", {0x35, 0x23, 0x80, 1}, 133},
      {"minus", {0x33, 0x35, 0x1c}, minus(2)},
      {"mul", {0x09, 0xfb, 0x37, 0x1e}, minus(35)},
      {"div is signed: -7 / 2", {0x09, 0xf9, 0x32, 0x1b}, minus(3)},
      {"div: the smallest / -1", Bytes{0x11}.sleb(INT64_MIN).u8(0x09).u8(0xff).u8(0x1b), k_min},
      {"mod is not: -1 mod 16", {0x09, 0xff, 0x40, 0x1d}, 15},
      {"shl", {0x31, 0x34, 0x24}, 16},
      {"shl by 64", {0x31, 0x08, 64, 0x24}, 0},
      {"shr of -1 by 60", {0x09, 0xff, 0x08, 60, 0x25}, 15},
      {"shr by 64", {0x09, 0xff, 0x08, 64, 0x25}, 0},
      {"shra of -16 by 2", {0x09, 0xf0, 0x32, 0x26}, minus(4)},
      {"shra of -16 by 200", {0x09, 0xf0, 0x08, 200, 0x26}, minus(1)},
      {"shra of 16 by -1, a large number", {0x40, 0x09, 0xff, 0x26}, 0},
      {"eq", {0x35, 0x35, 0x29}, 1},
      {"ge is signed: -1 >= 1", {0x09, 0xff, 0x31, 0x2a}, 0},
      {"gt: 1 > -1", {0x31, 0x09, 0xff, 0x2b}, 1},
      {"le: -1 <= 1", {0x09, 0xff, 0x31, 0x2c}, 1},
      {"lt: 1 < 1", {0x31, 0x31, 0x2d}, 0},
      {"ne", {0x31, 0x32, 0x2e}, 1},
      {"skip over one", {0x31, 0x2f, 1, 0, 0x32, 0x12, 0x22}, 2},
      {"skip to the end", {0x35, 0x2f, 0, 0}, 5},
      {"bra taken", {0x37, 0x31, 0x28, 2, 0, 0x13, 0x38}, 7},
      {"bra not taken", {0x37, 0x30, 0x28, 2, 0, 0x13, 0x38}, 8},
      // 5 0; loop: + 1; over over ne; bra loop
      {"a loop that counts to 5", {0x35, 0x30, 0x23, 1, 0x14, 0x14, 0x2e, 0x28, 0xf8, 0xff}, 5},
      {"nop", {0x96, 0x35, 0x96}, 5},
      // The lazy linkage table of glibc: rsp + 8 + ((rip & 15) >= 11) * 8, with r15 for rip.
      {"PLT", {0x77, 8, 0x7f, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, 0x2010},
  };
  for (const auto& c : cases) {
    const auto value = run(c.bytes);
    ASSERT_TRUE(value) << c.what << ": " << value.error().what;
    EXPECT_EQ(*value, c.value) << c.what;
  }
}

TEST_F(Expressions, InitialValueIsThere) {
  EXPECT_EQ(run({}, 0x1234).value(), 0x1234u);
  EXPECT_EQ(run({0x23, 8}, 0x1000).value(), 0x1008u);
  EXPECT_EQ(run({0x06}, 0x1000).value(), 0xffeeddccbbaa9988u);
}

TEST_F(Expressions, WordsOfFourBytesAndTheOtherOrder) {
  const Arch narrow = variant(4, false);
  EXPECT_EQ(run({0x30, 0x20}, {}, narrow).value(), 0xffffffffu);
  EXPECT_EQ(run({0x09, 0xff, 0x31, 0x22}, {}, narrow).value(), 0u);
  EXPECT_EQ(run({0x0c, 0, 0, 0, 0x80, 0x19}, {}, narrow).value(), 0x80000000u);
  EXPECT_EQ(run({0x0c, 0, 0, 0, 0x80, 0x34, 0x26}, {}, narrow).value(), 0xf8000000u);
  EXPECT_EQ(run({0x31, 0x08, 32, 0x24}, {}, narrow).value(), 0u);
  EXPECT_EQ(run({0x0c, 0, 0, 0, 0x80, 0x31, 0x2d}, {}, narrow).value(), 1u);
  EXPECT_EQ(run({0x0c, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b}, {}, narrow).value(), 0x80000000u);
  EXPECT_EQ(run({0x03, 1, 2, 3, 4}, {}, narrow).value(), 0x04030201u);
  EXPECT_EQ(run({0x76, 0, 0x06}, {}, narrow).value(), 0xbbaa9988u);
  const Arch big = variant(8, true);
  EXPECT_EQ(run({0x0a, 1, 2}, {}, big).value(), 0x0102u);
  EXPECT_EQ(run({0x03, 1, 2, 3, 4, 5, 6, 7, 8}, {}, big).value(), 0x0102030405060708u);
  EXPECT_EQ(run({0x76, 0, 0x94, 2}, {}, big).value(), 0x8899u);
}

TEST_F(Expressions, Refused) {
  const struct {
    const char* what;
    Bytes bytes;
    ErrorCode code;
    Addr at;  // offset of the operation
  } cases[] = {
      {"nothing", {}, ErrorCode::bad_structure, 0},
      {"nothing left", {0x31, 0x13}, ErrorCode::bad_structure, 2},
      {"underflow", {0x31, 0x22}, ErrorCode::bad_structure, 1},
      {"pick too deep", {0x31, 0x15, 1}, ErrorCode::bad_structure, 1},
      {"division by zero", {0x31, 0x30, 0x1b}, ErrorCode::bad_structure, 2},
      {"modulo zero", {0x31, 0x30, 0x1d}, ErrorCode::bad_structure, 2},
      {"register without value", {0x70, 0}, ErrorCode::undefined_register, 0},
      {"vector register", {0x31, 0x92, 17, 0}, ErrorCode::undefined_register, 1},
      {"register that the CPU does not have", {0x92, 0x80, 0x80, 4, 0}, ErrorCode::undefined_register, 0},
      {"register number of 64 bits", Bytes{0x92}.uleb(~std::uint64_t{0}).u8(0), ErrorCode::undefined_register, 0},
      {"unreadable memory", {0x77, 0, 0x06}, ErrorCode::unreadable_memory, 2},
      {"memory that ends", {0x76, 1, 0x06}, ErrorCode::unreadable_memory, 2},
      {"deref_size 0", {0x76, 0, 0x94, 0}, ErrorCode::bad_encoding, 2},
      {"deref_size 3", {0x76, 0, 0x94, 3}, ErrorCode::bad_encoding, 2},
      {"deref_size 16", {0x76, 0, 0x94, 16}, ErrorCode::bad_encoding, 2},
      {"operand cut off", {0x31, 0x0a, 1}, ErrorCode::truncated, 1},
      {"leb cut off", {0x10, 0x80}, ErrorCode::truncated, 0},
      {"leb of 65 bits", {0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3}, ErrorCode::bad_encoding, 0},
      {"signed leb of 65 bits",
       {0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1},
       ErrorCode::bad_encoding,
       0},
      {"padding that is not the sign",
       {0x11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f},
       ErrorCode::bad_encoding,
       0},
      {"jump before the beginning", {0x31, 0x2f, 0xf0, 0xff}, ErrorCode::bad_structure, 1},
      {"jump behind the end", {0x31, 0x2f, 1, 0}, ErrorCode::truncated, 1},
      {"unknown", {0x31, 0x00}, ErrorCode::bad_opcode, 1},
      {"unknown, user range", {0xff}, ErrorCode::bad_opcode, 0},
      {"reg0", {0x50}, ErrorCode::bad_opcode, 0},
      {"regx", {0x90, 1}, ErrorCode::bad_opcode, 0},
      {"fbreg", {0x91, 0}, ErrorCode::bad_opcode, 0},
      {"piece", {0x31, 0x93, 4}, ErrorCode::bad_opcode, 1},
      {"xderef", {0x31, 0x31, 0x18}, ErrorCode::bad_opcode, 2},
      {"xderef_size", {0x31, 0x31, 0x95, 1}, ErrorCode::bad_opcode, 2},
      {"push_object_address", {0x97}, ErrorCode::bad_opcode, 0},
      {"call2", {0x98, 0, 0}, ErrorCode::bad_opcode, 0},
      {"call4", {0x99, 0, 0, 0, 0}, ErrorCode::bad_opcode, 0},
      {"call_ref", {0x9a, 0, 0, 0, 0}, ErrorCode::bad_opcode, 0},
      {"form_tls_address", {0x31, 0x9b}, ErrorCode::bad_opcode, 1},
      {"call_frame_cfa", {0x9c}, ErrorCode::bad_opcode, 0},
      {"bit_piece", {0x9d, 1, 1}, ErrorCode::bad_opcode, 0},
      {"implicit_value", {0x9e, 1, 1}, ErrorCode::bad_opcode, 0},
      {"stack_value", {0x31, 0x9f}, ErrorCode::bad_opcode, 1},
      {"implicit_pointer", {0xa0}, ErrorCode::bad_opcode, 0},
      {"addrx", {0xa1, 0}, ErrorCode::bad_opcode, 0},
      {"constx", {0xa2, 0}, ErrorCode::bad_opcode, 0},
      {"entry_value", {0xa3, 1, 0x50}, ErrorCode::bad_opcode, 0},
      {"const_type", {0xa4}, ErrorCode::bad_opcode, 0},
      {"regval_type", {0xa5}, ErrorCode::bad_opcode, 0},
      {"deref_type", {0xa6}, ErrorCode::bad_opcode, 0},
      {"xderef_type", {0xa7}, ErrorCode::bad_opcode, 0},
      {"convert", {0xa8}, ErrorCode::bad_opcode, 0},
      {"reinterpret", {0xa9}, ErrorCode::bad_opcode, 0},
      {"GNU_push_tls_address", {0x31, 0xe0}, ErrorCode::bad_opcode, 1},
      {"GNU_encoded_addr", {0xf1}, ErrorCode::bad_opcode, 0},
      {"GNU_entry_value", {0xf3}, ErrorCode::bad_opcode, 0},
      {"GNU_parameter_ref", {0xfa}, ErrorCode::bad_opcode, 0},
  };
  for (const auto& c : cases) {
    const auto value = run(c.bytes);
    ASSERT_FALSE(value) << c.what;
    EXPECT_EQ(value.error().code, c.code) << c.what << ": " << value.error().what;
    EXPECT_EQ(value.error().at, c.at) << c.what << ": " << value.error().what;
    EXPECT_STRNE(value.error().what, "") << c.what;
  }
}

TEST_F(Expressions, EveryOperationIsKnownOrRefused) {
  for (unsigned op = 0; op < 256; ++op) {
    const auto value = run(Bytes{0x31, 0x31, 0x31, op}.fill(8, 0));
    EXPECT_TRUE(value || *value.error().what != 0) << op;
  }
}

TEST_F(Expressions, Bounded) {
  const auto endless = run({0x31, 0x2f, 0xfd, 0xff});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, ErrorCode::too_deep);
  EXPECT_EQ(run(Bytes().fill(64, 0x31)).value(), 1u);
  const auto deep = run(Bytes().fill(65, 0x31));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::too_deep);
  EXPECT_EQ(deep.error().at, 64u);
  EXPECT_EQ(run(Bytes{0x31}.fill(4095, 0x96)).value(), 1u);
  EXPECT_FALSE(run(Bytes{0x31}.fill(4096, 0x96)));
}

}  // namespace
}  // namespace jitunwind::test
