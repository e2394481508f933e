// Compact rows against the rows they are made of: the same caller, register by register, with the same places.
#include "jitunwind/unwind_core/kept/compact_row_p.h"

#include <gtest/gtest.h>

#include <random>

#include "jitunwind/unwind_core/kept/compact_step_p.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

constexpr const Arch& k_x86 = arch::x86_64;

FrameRow row_of(const std::string& text, const Arch& arch, ExpressionPool& pool) {
  const auto parsed = parse_row(text, arch, pool);
  if (!parsed) throw std::runtime_error(text + ": " + parsed.error().what);
  return parsed->row;
}

/// "" when it does not fit.
std::string round_trip(const std::string& text, const Arch& arch = k_x86) {
  ExpressionPool pool;
  const CompactLayout layout(arch);
  CompactRow compacted;
  if (!compact(row_of(text, arch, pool), layout, compacted)) return "";
  return to_text(expand(compacted, layout), arch);
}

TEST(CompactRow, HoldsOrdinaryFrames) {
  for (const char* text :
       {"cfa=rsp+8 ra=[cfa-8]", "cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]",
        "cfa=rsp+524280 rbx=[cfa-56] rbp=[cfa-48] r12=[cfa-40] r13=[cfa-32] r14=[cfa-24] r15=[cfa-16] ra=[cfa-8]",
        "cfa=r10 rbp=[cfa-2040] ra=[cfa-8]"})
    EXPECT_EQ(round_trip(text), text);
  EXPECT_EQ(round_trip("cfa=rsp+8 rbx=same ra=[cfa-8]"), "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(round_trip("cfa=sp+32 x19=[cfa-16] x29=[cfa-32] x30=[cfa-24]", arch::aarch64),
            "cfa=sp+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24]");
}

TEST(CompactRow, RefusesWhatItCannotSay) {
  for (const char* text :
       {"cfa=rsp+4 ra=[cfa-8]", "cfa=rsp-8 ra=[cfa-8]", "cfa=rsp+524288 ra=[cfa-8]", "cfa=rsp+8",
        "cfa=rsp+8 ra=undefined", "cfa=rsp+8 ra=rax", "cfa=rsp+8 rbx=[cfa-2048] ra=[cfa-8]",
        "cfa=rsp+8 rbx=[cfa-12] ra=[cfa-8]", "cfa=rsp+8 rbx=[cfa+8] ra=[cfa-8]", "cfa=rsp+8 rbx=undefined ra=[cfa-8]",
        "cfa=rsp+8 rbx=r12 ra=[cfa-8]", "cfa=rsp+8 rax=[cfa-16] ra=[cfa-8]", "cfa=rsp+8 rsp=[cfa-16] ra=[cfa-8]",
        "cfa=rsp+8 xmm6=[cfa-16] ra=[cfa-8]", "cfa=rsp+8 rbx=[rsp-16] ra=[cfa-8]", "cfa=[rbp+8]+0 ra=[cfa-8]"})
    EXPECT_EQ(round_trip(text), "") << text;
  // The pseudo register that says whether the return address is signed.
  EXPECT_EQ(round_trip("cfa=sp+16 x30=[cfa-8] ra_sign_state=1", arch::aarch64), "");
  const CompactLayout layout(k_x86);
  CompactRow out;
  FrameRow row = entry_row(k_x86);
  EXPECT_TRUE(compact(row, layout, out));
  row.signal_frame = true;
  EXPECT_FALSE(compact(row, layout, out));
  row = entry_row(k_x86);
  row.args_size = 16;
  EXPECT_FALSE(compact(row, layout, out));
}

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

/// A row with every feature that compact ones have, of a frame whose CFA is in the middle of `stack`.
FrameRow random_row(std::mt19937_64& random, const Arch& arch) {
  FrameRow row;
  const RegNum base = arch.registers[random() % 17].dwarf;
  row.cfa = CfaRule::at(base, static_cast<std::int64_t>(8 * (random() % 64)));
  row.ra = arch.ra;
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.reg_class != RegClass::general || reg.column < 0) continue;
    const auto offset = -8 * static_cast<std::int64_t>(1 + random() % 64);
    if (reg.dwarf == arch.ra || (reg.preserved && random() % 2 == 0))
      (void)row.set(reg.dwarf, random() % 8 == 0 && reg.dwarf != arch.ra ? RegRule::same() : RegRule::at_cfa(offset));
  }
  return row;
}

TEST(CompactRow, LeadsToTheSameCallerAsTheRow) {
  std::mt19937_64 random(5);
  std::array<std::uint64_t, 256> stack;
  for (auto& word : stack) word = random() >> 20;
  const LocalMemory memory;
  std::size_t applied = 0;
  for (const Arch* arch : {&arch::x86_64, &arch::aarch64}) {
    const CompactLayout layout(*arch);
    ASSERT_GT(layout.size(), 0u);
    for (int i = 0; i < 20'000; ++i) {
      const FrameRow row = random_row(random, *arch);
      CompactRow compacted;
      ASSERT_TRUE(compact(row, layout, compacted));
      const Addr cfa = reinterpret_cast<std::uintptr_t>(&stack[128 + random() % 64]);
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
      restore(compacted, layout, found, frame);
      ASSERT_EQ(found.pc, expected.pc);
      ASSERT_EQ(found.cfa, expected.cfa);
      ASSERT_EQ(text_of(frame, *arch), text_of(expected.registers, *arch)) << to_text(row, *arch);
    }
  }
  EXPECT_GT(applied, 30'000u);
}

TEST(CompactRow, LeavesMemoryThatCannotBeReadToTheRow) {
  const CompactLayout layout(k_x86);
  CompactRow row;
  ASSERT_TRUE(compact(entry_row(k_x86), layout, row));
  const LocalMemory memory;
  for (const Addr sp : {Addr{0}, Addr{16}, ~Addr{0} - 15, Addr{1} << 62}) {
    RegisterFile frame;
    frame.set(k_x86.column(k_x86.sp), sp);
    MemoryWindow window;
    CompactCaller caller;
    EXPECT_FALSE(find_caller(row, layout, memory, window, frame, caller)) << sp;
  }
}

}  // namespace
}  // namespace jitunwind::test
