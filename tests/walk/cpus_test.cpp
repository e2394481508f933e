// One engine on every CPU of the tree, in each of its byte orders: the row of a procedure's entry, signal frames, and
// words that differ from this machine's.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/all_targets.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_stack = 0x7000'0000;

class Cpus : public testing::TestWithParam<Arch> {
 protected:
  const Arch& arch() const { return GetParam(); }
  RegNum unused() const { return arch().ra_in_memory ? arch().exception_registers[0] : arch().ra; }
};

INSTANTIATE_TEST_SUITE_P(All, Cpus, testing::ValuesIn(all_targets()), target_name);

/// The procedure is at its entry; its caller has a frame of 64 bytes.
// covers: XP04
TEST_P(Cpus, StepFromTheEntryToTheCaller) {
  FakeSpace fake(arch(), arch().big_endian);
  GivenRows& rows = fake.rows;
  const FrameRow entry = entry_row(arch());
  rows.add({0x1000, 0x1100}, to_text(entry, arch()));
  const std::string sp = arch().by_dwarf(arch().sp)->name;
  const std::string size = std::to_string(64 + arch().entry_cfa);
  rows.add({0x2000, 0x2100}, "cfa=" + sp + "+" + size + " ra=[cfa-64]");
  const Addr caller_sp = k_stack + static_cast<Addr>(std::int64_t{arch().entry_cfa} + arch().caller_sp_bias);
  const Addr caller_cfa = caller_sp + 64 + static_cast<Addr>(std::int64_t{arch().entry_cfa});
  fake.memory.put(caller_cfa - 64, 0x3010, arch().word_size);
  if (arch().ra_in_memory)
    fake.memory.put(k_stack + static_cast<Addr>(std::int64_t{arch().entry_cfa} + arch().entry_ra), 0x2010,
                    arch().word_size);
  const char* const ra = arch().by_dwarf(unused())->name;
  Cursor cursor = fake.cursor(0x1000, k_stack, {{ra, 0x2010}});
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x2010u);
  EXPECT_EQ(cursor.sp(), caller_sp);
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x3010u);
  EXPECT_EQ(cursor.sp(), caller_cfa + static_cast<Addr>(std::int64_t{arch().caller_sp_bias}));
}

/// The kernel's frame is known by the bytes at the handler's return address, in whatever order the CPU has its code.
// covers: XP04 RG04
TEST_P(Cpus, StepOutOfASignalFrame) {
  unsigned known = 0;
  for (const CodePattern& trampoline : arch().trampolines) {
    FakeSpace fake(arch(), arch().big_endian);
    fake.memory.put_bytes(0x5000, std::as_bytes(trampoline.bytes));
    const Addr ucontext = k_stack + static_cast<Addr>(std::int64_t{arch().sigframe_ucontext} + trampoline.cfa_offset);
    for (const RegisterInfo& reg : arch().registers) {
      if (reg.ucontext < 0) continue;
      const Addr at = ucontext + static_cast<Addr>(reg.ucontext);
      // A vector register is one number there: its upper half comes first on big-endian CPUs.
      const Addr upper = reg.reg_class == RegClass::vector ? arch().vector_slot - 8u : 0;
      if (upper != 0) fake.memory.put(arch().big_endian ? at : at + upper, 0xbad, 8);
      fake.memory.put(arch().big_endian ? at + upper : at, 0x100000u + 16 * reg.dwarf, arch().word_size);
    }
    if (const ContextRecords* const records = arch().records) {
      const Addr head = ucontext + static_cast<Addr>(records->first);
      fake.memory.put(head, records->kind, 4);
      fake.memory.put(head + 4, records->size, 4);
    }
    const std::array<const RowSource*, 1> sources{&signal_frame_source()};
    const AddressSpace space{arch(), fake.memory, fake.modules, sources, {}};
    RegisterFile registers;
    registers.set(arch().column(arch().pc), 0x5000u + trampoline.pc_offset);
    registers.set(arch().column(arch().sp), k_stack);
    Cursor cursor(space, registers, Cursor::Top::interrupted);
    EXPECT_TRUE(*cursor.is_signal_frame());
    ASSERT_TRUE(*cursor.step());
    for (const RegisterInfo& reg : arch().registers) {
      if (reg.ucontext < 0) continue;
      const auto value = cursor.get(reg.dwarf);
      ASSERT_TRUE(value) << reg.name;
      EXPECT_EQ(*value, 0x100000u + 16 * reg.dwarf) << reg.name;
    }
    EXPECT_EQ(cursor.pc(), 0x100000u + 16u * arch().pc);
    EXPECT_EQ(cursor.sp(), 0x100000u + 16u * arch().sp);
    EXPECT_FALSE(cursor.address().is_return_address());
    ++known;
  }
  EXPECT_GT(known, 0u);
}

/// A space in which only signal frames are known.
struct SignalFrames {
  explicit SignalFrames(const Arch& a) : arch(a), memory(a.big_endian) {}

  void put_trampoline(Addr at, std::span<const std::uint8_t> bytes) { memory.put_bytes(at, std::as_bytes(bytes)); }
  /// Writes the state to which the signal frame at `sp` returns.
  void put_frame(const CodePattern& trampoline, Addr sp, Addr to_pc, Addr to_sp) {
    const Addr ucontext = sp + static_cast<Addr>(std::int64_t{arch.sigframe_ucontext} + trampoline.cfa_offset);
    const auto put = [&](RegNum reg, Addr value) {
      memory.put(ucontext + static_cast<Addr>(arch.by_dwarf(reg)->ucontext), value, arch.word_size);
    };
    put(arch.pc, to_pc);
    put(arch.sp, to_sp);
  }
  Cursor cursor(Addr pc, Addr sp) const {
    RegisterFile registers;
    registers.set(arch.column(arch.pc), pc);
    registers.set(arch.column(arch.sp), sp);
    return {space, registers, Cursor::Top::interrupted};
  }

  const Arch& arch;
  FakeMemory memory;
  NoModules modules;
  std::array<const RowSource*, 1> sources{&signal_frame_source()};
  std::array<const RowSource*, 4> guesses{&followed_code_source(), &bad_call_source(), &leaf_source(),
                                          &frame_pointer_source()};
  AddressSpace space{arch, memory, modules, sources, {}, nullptr, guesses};
};

/// Only its bytes tell a trampoline, and memory may end among them, or some bytes may differ. If memory ends there, the
/// error says so, even if guesses are allowed.
// covers: RG04
TEST_P(Cpus, ATruncatedTrampolineIsNone) {
  for (const CodePattern& trampoline : arch().trampolines) {
    for (std::size_t size = 0; size < trampoline.bytes.size(); ++size) {
      for (const bool other : {false, true}) {
        SignalFrames frames(arch());
        frames.put_trampoline(0x5000, trampoline.bytes.first(size));
        const unsigned counts = trampoline.mask[size];
        const auto wrong = static_cast<std::uint8_t>(trampoline.bytes[size] ^ (counts & -counts));
        if (other) frames.put_trampoline(0x5000 + size, {&wrong, 1});
        frames.put_frame(trampoline, k_stack, 0x2000, k_stack + 0x1000);
        Cursor cursor = frames.cursor(0x5000u + trampoline.pc_offset, k_stack);
        if (!other) cursor.set_guesses(Guesses::bold);
        const auto moved = cursor.step();
        ASSERT_FALSE(moved) << size;
        const bool ends = !other && size > trampoline.pc_offset;
        EXPECT_EQ(cursor.stop_reason(), ends ? StopReason::broken : StopReason::no_info) << size;
        EXPECT_EQ(moved.error().code, ends ? ErrorCode::unreadable_memory : ErrorCode::no_info) << size;
        if (ends) {
          EXPECT_EQ(moved.error().at, 0x5000 + size);
        }
      }
    }
  }
}

/// Memory ends in the frame, before its pc or its SP.
// covers: RG04
TEST_P(Cpus, ATruncatedSignalFrameEndsTheWalk) {
  for (const CodePattern& trampoline : arch().trampolines) {
    for (const RegNum missing : {arch().pc, arch().sp}) {
      SignalFrames frames(arch());
      frames.put_trampoline(0x5000, trampoline.bytes);
      frames.put_frame(trampoline, k_stack, 0x2000, k_stack + 0x1000);
      const Addr ucontext = k_stack + static_cast<Addr>(std::int64_t{arch().sigframe_ucontext} + trampoline.cfa_offset);
      const Addr slot = ucontext + static_cast<Addr>(arch().by_dwarf(missing)->ucontext);
      frames.memory.forget(slot + arch().word_size - 1u, 1);
      Cursor cursor = frames.cursor(0x5000u + trampoline.pc_offset, k_stack);
      const auto moved = cursor.step();
      ASSERT_FALSE(moved);
      EXPECT_EQ(cursor.stop_reason(), StopReason::broken);
      EXPECT_EQ(moved.error().code, ErrorCode::unreadable_memory);
      EXPECT_EQ(moved.error().at, slot);
    }
  }
}

/// These frames return to each other.
// covers: RG04 LU13
TEST_P(Cpus, SignalFramesInACircleEnd) {
  const CodePattern& trampoline = arch().trampolines[0];
  const Addr pc = 0x5000u + trampoline.pc_offset;
  for (const std::size_t count : {1u, 2u, 5u}) {
    SignalFrames frames(arch());
    frames.put_trampoline(0x5000, trampoline.bytes);
    for (std::size_t i = 0; i < count; ++i)
      frames.put_frame(trampoline, k_stack + 0x2000 * i, pc, k_stack + 0x2000 * ((i + 1) % count));
    Cursor cursor = frames.cursor(pc, k_stack);
    std::size_t steps = 0;
    while (steps < 100 && cursor.step()) ++steps;
    EXPECT_EQ(cursor.stop_reason(), StopReason::cyclic) << count;
  }
}

/// Naming a frame of code made at run time costs one read of its bytes, a system call, however many trampolines a CPU
/// has.
TEST_P(Cpus, CodeIsComparedWithAllTrampolinesByOneRead) {
  class CountingMemory final : public FakeMemory {
   public:
    std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
      ++reads;
      return FakeMemory::read(at, into, window);
    }
    mutable unsigned reads = 0;
  };
  CountingMemory memory;
  memory.put_bytes(0x5000, std::array<std::byte, 64>{});
  MemoryWindow window;
  EXPECT_EQ(find_pattern(arch().trampolines, 0x5020, memory, window), nullptr);
  EXPECT_EQ(memory.reads, 1u);
  for (const CodePattern& trampoline : arch().trampolines) {
    memory.put_bytes(0x5020 - trampoline.pc_offset, std::as_bytes(trampoline.bytes));
    EXPECT_NE(find_pattern(arch().trampolines, 0x5020, memory, window), nullptr);
    memory.put_bytes(0x5000, std::array<std::byte, 64>{});
  }
}

/// Addresses have as many bits as a word.
// covers: XP04
TEST_P(Cpus, AddressesWrapAsWordsDo) {
  FakeSpace fake(arch(), arch().big_endian);
  const std::string sp = arch().by_dwarf(arch().sp)->name;
  fake.rows.add({0x1000, 0x1100}, "cfa=" + sp + "+32 ra=[cfa-8]");
  const Addr top = arch().word_mask() - 15;
  fake.memory.put(8, 0x2010, arch().word_size);
  Cursor cursor = fake.cursor(0x1000, top);
  ASSERT_TRUE(*cursor.step());
  EXPECT_EQ(cursor.pc(), 0x2010u);
  EXPECT_EQ(cursor.sp(), (16 + static_cast<Addr>(std::int64_t{arch().caller_sp_bias})) & arch().word_mask());
}

/// A row of a hostile target may name any register as the one with the return address.
TEST_P(Cpus, AnyReturnAddressColumnIsBounded) {
  const std::string sp = arch().by_dwarf(arch().sp)->name;
  for (const RegisterInfo& reg : arch().registers) {
    FakeSpace fake(arch(), arch().big_endian);
    fake.memory.put(k_stack + 48, 0x2010, 8);
    ExpressionPool pool;
    auto row = parse_row("cfa=" + sp + "+64 " + reg.name + "=[cfa-16]", arch(), pool);
    ASSERT_TRUE(row);
    row->row.ra = reg.dwarf;
    Caller caller;
    MemoryWindow window;
    RegisterFile registers;
    registers.set(arch().column(arch().sp), k_stack);
    const Status applied = apply_row(row->row, registers, arch(), fake.memory, window, caller);
    EXPECT_EQ(bool{applied}, RegisterFile::has(reg.column)) << reg.name;
  }
}

/// A caller has 8 bytes of each preserved floating-point register, whatever the word size is.
// covers: XP04
TEST_P(Cpus, VectorRegistersHaveEightBytes) {
  for (const RegisterInfo& reg : arch().registers) {
    if (reg.reg_class != RegClass::vector || reg.column < 0) continue;
    FakeSpace fake(arch(), arch().big_endian);
    const std::string sp = arch().by_dwarf(arch().sp)->name;
    fake.rows.add({0x1000, 0x1100}, "cfa=" + sp + "+64 ra=[cfa-16] " + reg.name + "=[cfa-32]");
    fake.memory.put(k_stack + 48, 0x2010, arch().word_size);
    fake.memory.put(k_stack + 32, 0x1122'3344'5566'7788);
    Cursor cursor = fake.cursor(0x1000, k_stack);
    ASSERT_TRUE(*cursor.step());
    const auto value = cursor.get(reg.dwarf);
    EXPECT_EQ(bool{value}, RegisterFile::has(reg.column)) << reg.name;
    if (value) {
      EXPECT_EQ(*value, 0x1122'3344'5566'7788u) << reg.name;
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
