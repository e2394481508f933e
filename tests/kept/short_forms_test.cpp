// Compares every short form of apply_row() with apply_row(): for one frame both must find one caller. docs/caches.md,
// "Short forms", lists the forms; tests/rules compares the list with the sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/kept/compact_step_p.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/caller_chain_p.h"
#include "tests/support/host_row.h"

namespace jitunwind::test {
namespace {

using Kind = CallerRule::Kind;
constexpr Addr k_pc = 0x7001;  // no code is there

/// Returns rows that have a rule of this kind. A kind that is missing here does not compile.
std::vector<std::string> rows_of(Kind kind, const Arch& arch) {
  const auto name = [&](RegNum reg) { return std::string(arch.by_dwarf(reg)->name); };
  const std::string sp = name(arch.sp), fp = name(arch.fp);
  switch (kind) {
    case Kind::compact:
      if (!arch.calls_push())
        return {host_row("cfa=SP+16 ra=[cfa-16]"), host_row("cfa=SP+64 ra=[cfa-8]"),
                host_row("cfa=SP+48 FP=[cfa-48] ra=[cfa-40]"), host_row("cfa=FP+16 FP=[cfa-16] ra=[cfa-8]"),
                host_row("cfa=FP+2040 FP=[cfa-2040] ra=[cfa-2032]")};
      return {host_row("cfa=SP+8 ra=[cfa-8]"), host_row("cfa=SP+64 ra=[cfa-8]"),
              host_row("cfa=SP+48 FP=[cfa-24] ra=[cfa-8]"), host_row("cfa=FP+16 FP=[cfa-16] ra=[cfa-8]"),
              host_row("cfa=FP+2040 FP=[cfa-2040] ra=[cfa-8]")};
    case Kind::realigned:
      if (!arch.calls_push()) return {};
      return {host_row("cfa=[FP-8] FP=[FP+0] ra=[cfa-8]"), host_row("cfa=[FP-80] FP=[FP+0] ra=[cfa-8]")};
    case Kind::signal: {
      const UcontextOffsets at = ucontext_offsets(arch);
      const auto saved = [&](Addr offset) {
        return "[" + sp + "+" + std::to_string(static_cast<Addr>(std::int64_t{arch.sigframe_ucontext}) + offset) + "]";
      };
      const std::string pc = arch.ra == arch.pc ? "ra" : name(arch.pc);
      if (pc != "ra") return {};
      return {"cfa=" + saved(at.sp) + " " + fp + "=" + saved(at.fp) + " " + sp + "=" + saved(at.sp) +
              " ra=" + saved(at.pc) + " signal"};
    }
    case Kind::outermost:
      return {host_row("cfa=SP+8 ra=undefined")};
  }
  return {};
}
constexpr std::array k_kinds{Kind::compact, Kind::realigned, Kind::signal, Kind::outermost};

/// A frame on this thread's stack, whose words are addresses further up on it.
class ShortForms : public testing::TestWithParam<Kind> {
 protected:
  static constexpr std::size_t k_words = 2048;

  void fill() {
    for (std::size_t i = 0; i < k_words; ++i)
      stack_[i] = static_cast<std::uintptr_t>(address_of(std::min(i + 16 + below_64(), k_words - 1)));
  }
  Addr address_of(std::size_t word) const { return reinterpret_cast<std::uintptr_t>(&stack_[word]); }
  RegisterFile registers(const Arch& arch) {
    RegisterFile frame;
    for (const RegisterInfo& reg : arch.registers)
      if (reg.column >= 0 && reg.preserved)
        frame.set_from_register(reg.column, random_() & arch.word_mask(), reg.dwarf);
    frame.set(arch.column(arch.sp), address_of(below_64()));
    frame.set(arch.column(arch.fp), address_of(300 + below_64()));
    frame.set(arch.column(arch.pc), k_pc);
    return frame;
  }

  std::size_t below_64() { return static_cast<std::size_t>(random_() % 64); }

  std::mt19937_64 random_{7};
  alignas(16) std::array<std::uintptr_t, k_words> stack_;
};

std::uint64_t value(const RegisterFile& registers, const Arch& arch, RegNum reg) {
  return registers.get(arch.column(reg)).value_or(0);
}

// Walks of addresses use CallerChain::step_by(), and for compact rules the loop of CallerChain::run().
TEST_P(ShortForms, OfRulesLeadWhereTheRowLeads) {
  const AddressSpace& space = local_space();
  ASSERT_NE(space.row_cache, nullptr);
  const Arch& arch = space.arch;
  const RowCache& rows = *space.row_cache;
  for (const std::string& text : rows_of(GetParam(), arch)) {
    ExpressionPool pool;
    const auto parsed = parse_row(text, arch, pool);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().what;
    const FrameRow& row = parsed->row;
    CompactRow in_short;
    const bool is_compact = compact(row, rows.layout, in_short);
    ASSERT_EQ(is_compact, GetParam() == Kind::compact) << text;
    CallerRule rule(KeptBy::lasting, Kind::outermost);
    if (is_compact) rule = rows.rule_of(in_short, RowOrigin::eh_frame, KeptBy::lasting);
    if (!is_compact && GetParam() != Kind::outermost) rule = rule_of_other(row, KeptBy::lasting, arch);
    ASSERT_EQ(rule.kind(), GetParam()) << text;
    ASSERT_EQ(rule.kept_by(), KeptBy::lasting) << text;
    for (int i = 0; i < 500; ++i) {
      fill();
      const RegisterFile frame = registers(arch);
      MemoryWindow window;
      Caller expected;
      ASSERT_TRUE(apply_row(row, frame, arch, space.memory, window, expected)) << text;
      const Addr sp = value(frame, arch, arch.sp), fp = value(frame, arch, arch.fp);
      std::array<void*, 1> into{};
      CallerChain chain(space, {CodeAddress::returned_to(k_pc), sp, fp}, WalkPart::callers, into);
      CallerChain::Position position = chain.position();
      const auto stop = chain.step_by(rule, position);
      if (expected.outermost) {
        EXPECT_EQ(stop, CallerChain::Stop::outermost);
        continue;
      }
      // The cursor handles a frame that is not above its callee.
      if (value(expected.registers, arch, arch.sp) <= sp) {
        EXPECT_EQ(stop, CallerChain::Stop::unknown) << text;
        continue;
      }
      ASSERT_EQ(stop, CallerChain::Stop::full) << text;
      EXPECT_EQ(position.pc, expected.pc) << text;
      EXPECT_EQ(position.sp, value(expected.registers, arch, arch.sp)) << text;
      EXPECT_EQ(position.fp, value(expected.registers, arch, arch.fp)) << text;

      const KeepTicket ticket = chain.ticket(k_pc - 1, chain.find(k_pc - 1));
      (void)rows.keep(ticket, rule, is_compact ? &in_short : nullptr, {});
      CallerChain again(space, {CodeAddress::returned_to(k_pc), sp, fp}, WalkPart::callers, into);
      ASSERT_EQ(again.run(), CallerChain::Stop::full) << text;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(into[0]), expected.pc) << text;
      EXPECT_EQ(again.position().sp, position.sp) << text;
      EXPECT_EQ(again.position().fp, position.fp) << text;
    }
  }
}

/// A rule says where the frame pointer is, and thus the return address. Other rows have no such rule.
TEST(ShortFormOfRules, IsOfFrameRecordsWhereCallsPushNothing) {
  const RowCache& rows = *local_space().row_cache;
  const Arch& arch = local_space().arch;
  const auto is_kept = [&](const char* text) {
    ExpressionPool pool;
    CompactRow row;
    EXPECT_TRUE(compact(parse_row(host_row(text), arch, pool)->row, rows.layout, row)) << text;
    return rows.rule_of(row, RowOrigin::eh_frame, KeptBy::lasting).kept_by() != KeptBy::nothing;
  };
  EXPECT_TRUE(is_kept("cfa=SP+48 FP=[cfa-16] ra=[cfa-8]"));
  EXPECT_EQ(is_kept("cfa=SP+48 FP=[cfa-24] ra=[cfa-8]"), arch.calls_push());
  EXPECT_EQ(is_kept("cfa=SP+48 FP=[cfa-48] ra=[cfa-40]"), !arch.calls_push());
}

/// Treats this process as another one: its bytes are copied, never read in place.
class OthersMemory final : public Memory {
 public:
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    MemoryWindow window;  // what is proven there is what can be seen in place
    return local_space().memory.read(at, into, window);
  }
};

void expect_same_registers(const RegisterFile& found, const RegisterFile& expected, const Arch& arch) {
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.column < 0) continue;
    EXPECT_EQ(found.get(reg.column), expected.get(reg.column)) << reg.name;
    EXPECT_EQ(found.location(reg.column), expected.location(reg.column)) << reg.name;
  }
}

// Cursors and throws use compact_step_p.h for compact rows. More of it: compact_caller_test.cpp.
TEST_P(ShortForms, OfCompactRowsLeadWhereTheRowLeads) {
  const AddressSpace& space = local_space();
  const OthersMemory others;
  const CompactLayout layout(space.arch);
  for (const std::string& text : rows_of(GetParam(), space.arch)) {
    ExpressionPool pool;
    const FrameRow row = parse_row(text, space.arch, pool)->row;
    CompactRow in_short;
    if (!compact(row, layout, in_short)) continue;
    fill();
    const RegisterFile frame = registers(space.arch);
    MemoryWindow window, others_window;
    Caller expected;
    ASSERT_TRUE(apply_row(row, frame, space.arch, space.memory, window, expected));
    CompactCaller found;
    RegisterFile moved = frame;
    ASSERT_TRUE(find_caller(in_short, layout, space.memory, window, frame, found));
    restore_saved(in_short, layout, found.cfa, moved);
    restore_others(layout, found, moved);
    EXPECT_EQ(found.pc, expected.pc);
    expect_same_registers(moved, expected.registers, space.arch);

    CopiedCaller copied;
    EXPECT_FALSE(find_caller(in_short, layout, others, others_window, frame, found));
    const bool is_copied = copy_caller(in_short, layout, others, others_window, frame, copied);
    EXPECT_EQ(is_copied, in_short.deepest <= 32) << text;
    if (!is_copied) continue;
    moved = frame;
    restore(in_short, layout, copied, moved);
    EXPECT_EQ(copied.pc, expected.pc);
    expect_same_registers(moved, expected.registers, space.arch);
  }
}

/// No caller is made up if nothing can be read.
TEST(ShortFormOfCopies, OfAStackThatCannotBeRead) {
  const Arch& arch = local_space().arch;
  const CompactLayout layout(arch);
  ExpressionPool pool;
  CompactRow row;
  ASSERT_TRUE(compact(parse_row(host_row("cfa=SP+16 ra=[cfa-8] FP=[cfa-16]"), arch, pool)->row, layout, row));
  RegisterFile frame;
  frame.set(arch.column(arch.sp), 0x1000);
  MemoryWindow window;
  CopiedCaller caller;
  EXPECT_FALSE(copy_caller(row, layout, OthersMemory(), window, frame, caller));
  EXPECT_FALSE(copy_caller(row, layout, OthersMemory(), window, RegisterFile(), caller)) << "the base has no value";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShortForms, testing::ValuesIn(k_kinds));

}  // namespace
}  // namespace jitunwind::test
