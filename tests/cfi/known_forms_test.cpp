// Expressions that the decoder turns into plain rules keep their meaning: both forms are applied to random frames.
#include <gtest/gtest.h>

#include <random>

#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/rows/dwarf_expression.h"
#include "tests/support/cfi_assembler.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

class KnownForms : public testing::Test {
 protected:
  std::mt19937_64 random_{3};
  FakeMemory memory_;
  MemoryWindow window_;
  RegisterFile frame_;

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  /// A frame whose registers point into a block of random words.
  void new_frame() {
    for (Addr at = 0x10000; at < 0x10400; at += 8) memory_.put(at, random_());
    for (int column = 0; column < 17; ++column) frame_.set(column, 0x10100 + below(0x200));
  }

  Bytes breg(RegNum reg, std::int64_t offset) {
    if (below(4) == 0) return Bytes{0x92}.uleb(reg).sleb(offset);
    return Bytes{0x70u + reg}.sleb(offset);
  }

  /// Appends + k in one of its spellings.
  Bytes plus(std::int64_t k) {
    switch (below(4)) {
      case 0:
        return Bytes{0x23}.uleb(static_cast<std::uint64_t>(k));
      case 1:
        return Bytes{0x0e}.u64(static_cast<std::uint64_t>(k)).u8(0x22);
      case 2:
        return Bytes{0x0b}.u16(static_cast<std::uint64_t>(k)).u8(0x22);  // k has 16 bits
      default:
        return Bytes{0x11}.sleb(k).u8(0x22);
    }
  }

  FrameRow row_of(const Bytes& instructions) {
    CfiSection section;
    const Addr at = section.fde(section.cie({}), 0x1000, 16, instructions);
    SectionView view(section.section());
    const CfiContext context{.arch = arch::x86_64};
    const auto fde = read_fde(view, context, at);
    FrameRow row;
    EXPECT_TRUE(fde && row_at(*fde, context, 0x1000, row));
    return row;
  }

  std::uint64_t value_of(const Bytes& expression, std::optional<std::uint64_t> initial) {
    const auto value = evaluate(expression.vector(), {arch::x86_64, frame_, memory_, window_, initial});
    EXPECT_TRUE(value);
    return value ? *value : 0;
  }

  Caller applied(const FrameRow& row) {
    Caller caller;
    const Status status = apply_row(row, frame_, arch::x86_64, memory_, window_, caller);
    EXPECT_TRUE(status) << status.error().what;
    return caller;
  }
};

TEST_F(KnownForms, LoadedCfa) {
  for (int i = 0; i < 2000; ++i) {
    new_frame();
    Bytes expression = breg(static_cast<RegNum>(below(16)), static_cast<std::int64_t>(below(256)) - 128).u8(0x06);
    if (below(3) != 0) expression.add(plus(static_cast<std::int64_t>(below(65536)) - 32768));
    // The return address is left in a register, because the CFA itself is any number.
    const FrameRow row = row_of(Bytes{0x0f}.block(expression).add({0x09, 16, 0}));
    ASSERT_EQ(row.cfa.kind, CfaRule::Kind::deref);
    ASSERT_EQ(applied(row).cfa, value_of(expression, std::nullopt));
  }
}

TEST_F(KnownForms, RegistersRelativeToRegisters) {
  for (int i = 0; i < 2000; ++i) {
    new_frame();
    const auto offset = [this] { return static_cast<std::int64_t>(below(256)) - 128; };
    const Bytes at = breg(static_cast<RegNum>(below(16)), offset());
    const Bytes is = breg(static_cast<RegNum>(below(16)), offset());
    const Bytes number = Bytes{0x11}.sleb(static_cast<std::int64_t>(random_()));
    const FrameRow row =
        row_of(Bytes{0x10, 3}.block(at).u8(0x16).u8(6).block(is).u8(0x16).u8(12).block(number).add({0x09, 16, 0}));
    ASSERT_EQ(row.rule(3).kind, RegRule::Kind::at_reg);
    ASSERT_EQ(row.rule(6).kind, RegRule::Kind::is_reg);
    ASSERT_EQ(row.rule(12).kind, RegRule::Kind::constant);
    const Caller caller = applied(row);
    Bytes loaded = at;
    ASSERT_EQ(caller.registers.get(3), value_of(loaded.u8(0x06), caller.cfa));
    ASSERT_EQ(caller.registers.get(6), value_of(is, caller.cfa));
    ASSERT_EQ(caller.registers.get(12), value_of(number, caller.cfa));
  }
}

}  // namespace
}  // namespace jitunwind::test
