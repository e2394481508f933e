// Compact rows of this machine, compared with the rows they are made of: they find the same caller, register by
// register, with the same places.
#include "jitunwind/unwind_core/kept/compact_row_internal.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>

#include "jitunwind/unwind_core/kept/compact_step_p.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "tests/support/emulated.h"
#include "tests/support/fake_space.h"
#include "tests/support/host_row.h"

namespace jitunwind::test {
namespace {

std::string text_of(const RegisterFile& registers, const Arch& arch) {
  std::string text;
  for (const RegisterInfo& reg : arch.registers) {
    if (!registers.known(reg.column)) continue;
    const SaveLocation place = registers.location(reg.column);
    text += std::string(reg.name) + "=" + std::to_string(registers.value(reg.column)) + "@" +
            std::to_string(static_cast<int>(place.kind)) + ":" + std::to_string(place.reg) + ":" +
            std::to_string(place.at) + " ";
  }
  return text;
}

/// Makes a row with every feature of compact ones, for a frame whose CFA is in the middle of `stack`.
FrameRow random_row(std::mt19937_64& random, const Arch& arch) {
  FrameRow row;
  const std::size_t n_bases = arch.word_size == 8 ? 17 : 9;  // general registers
  const RegNum base = arch.registers[static_cast<std::size_t>(random() % n_bases)].dwarf;
  row.cfa = CfaRule::at(base, static_cast<std::int64_t>(arch.word_size * (random() % 64)));
  row.ra = arch.ra;
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.reg_class != RegClass::general || reg.column < 0) continue;
    const auto offset = -arch.word_size * static_cast<std::int64_t>(1 + random() % 64);
    if (reg.dwarf == arch.ra || (reg.preserved && random() % 2 == 0))
      (void)row.set(reg.dwarf, random() % 8 == 0 && reg.dwarf != arch.ra ? RegRule::same() : RegRule::at_cfa(offset));
  }
  return row;
}

TEST(CompactRow, LeadsToTheSameCallerAsTheRow) {
  std::mt19937_64 random(5);
  std::array<std::uintptr_t, 256> stack;
  for (auto& word : stack) word = static_cast<std::uintptr_t>(random() >> (sizeof word == 8 ? 20 : 36));
  const LocalMemory memory;
  std::size_t applied = 0;
  for (const Arch* arch : {&arch::x86_64, &arch::aarch64, &arch::x86}) {
    if (arch->word_size != sizeof stack[0]) continue;
    const CompactLayout layout(*arch);
    ASSERT_GT(layout.size(), 0u);
    for (std::size_t i = 0; i < repetitions(20'000); ++i) {
      const FrameRow row = random_row(random, *arch);
      CompactRow compacted;
      ASSERT_TRUE(compact(row, layout, compacted));
      const Addr cfa = reinterpret_cast<std::uintptr_t>(&stack[static_cast<std::size_t>(128 + random() % 64)]);
      RegisterFile frame;
      for (const RegisterInfo& reg : arch->registers)
        if (reg.column >= 0 && random() % 4 != 0) frame.set_from_register(reg.column, random(), reg.dwarf);
      if (random() % 16 != 0)
        frame.set(arch->column(row.cfa.reg), cfa - static_cast<std::uint64_t>(row.cfa.offset));
      else
        frame.forget(arch->column(row.cfa.reg));
      MemoryWindow window;
      Caller expected;
      const Status status = apply_row(row, frame, *arch, memory, window, expected);
      CompactCaller found;
      const bool is_found = find_caller(compacted, layout, memory, window, frame, found);
      ASSERT_EQ(is_found, status.has_value());
      if (!is_found) continue;
      ++applied;
      restore_saved(compacted, layout, found.cfa, frame);
      restore_others(layout, found, frame);
      ASSERT_EQ(found.pc, expected.pc);
      ASSERT_EQ(found.cfa, expected.cfa);
      ASSERT_EQ(text_of(frame, *arch), text_of(expected.registers, *arch)) << to_text(row, *arch);
    }
  }
  EXPECT_GT(applied, repetitions(15'000));
}

TEST(CompactRow, LeavesMemoryThatCannotBeReadToTheRow) {
  const Arch& arch = *host_arch();
  const CompactLayout layout(arch);
  ExpressionPool pool;
  CompactRow row;
  ASSERT_TRUE(compact(parse_row(host_row("cfa=SP+16 ra=[cfa-8]"), arch, pool)->row, layout, row));
  const LocalMemory memory;
  for (const Addr sp : {Addr{0}, Addr{16}, arch.word_mask() - 15, arch.word_mask() - 0xfff}) {
    RegisterFile frame;
    frame.set(arch.column(arch.sp), sp);
    MemoryWindow window;
    CompactCaller caller;
    EXPECT_FALSE(find_caller(row, layout, memory, window, frame, caller)) << sp;
  }
}

}  // namespace
}  // namespace jitunwind::test
