// Rows from following code from its entry, compared with the compiler's own call frame information, for every
// instruction of every procedure of this program: the CFA's place, and the saved registers.
#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"

#include <gtest/gtest.h>
#include <link.h>

#include <array>
#include <cstring>
#include <sstream>
#include <vector>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "tests/support/fake_space.h"

namespace jitunwind::test {
using namespace stepping;
namespace {

using Base = StackPlace::Base;

const LocalMemory k_memory;
const AddressSpace k_space{arch::x86_64, k_memory, local_modules(), {}, {}};
constexpr RegNum k_sp = 7;

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

std::optional<FrameRow> row_at(Addr pc) {
  MemoryWindow window;
  Lookup lookup(k_space, CodeAddress::interrupted(pc), window);
  FrameRow row;
  const Found found = eh_frame_source().find_row(lookup, row);
  return found && *found ? std::optional(row) : std::nullopt;
}

/// Returns the procedures of the module with this code, by the table in .eh_frame_hdr (LSB 5.0, 10.6.2).
std::vector<AddrRange> procedures() {
  Module module;
  EXPECT_TRUE(local_modules().find(addr_of(reinterpret_cast<const void*>(&row_at)), module));
  const std::byte* const header = module.eh_frame_hdr.bytes.data();
  const auto word = [header](std::size_t at) {
    std::int32_t value = 0;
    std::memcpy(&value, header + at, sizeof value);
    return value;
  };
  EXPECT_EQ(static_cast<int>(header[3]), 0x3b) << "a table of DW_EH_PE_datarel | DW_EH_PE_sdata4";
  std::vector<AddrRange> all;
  for (int i = 0; i < word(8); ++i) {
    const Addr start = addr_of(header) + static_cast<Addr>(std::int64_t{word(12 + 8 * static_cast<std::size_t>(i))});
    MemoryWindow window;
    Lookup lookup(k_space, CodeAddress::interrupted(start), window);
    ProcedureInfo info;
    const Found found = eh_frame_source().find_procedure(lookup, info);
    if (found && *found) all.push_back(info.range);
  }
  return all;
}

/// CFA - SP at the entry, where SP is at the return address.
constexpr std::int64_t k_entry_cfa = 8;

struct Comparison {
  std::size_t instructions = 0;
  std::size_t reached = 0;
  std::size_t returned = 0;  ///< where both ends say the same
  std::vector<std::string> wrong;

  void compare(Addr entry, Addr pc, const FrameRow& row) {
    ++instructions;
    MemoryWindow window;
    CodeState state;
    if (!CodeFlow(k_space, window, entry).reach(CodeAddress::interrupted(pc), state)) return;
    const bool by_sp = row.cfa.reg == k_sp;
    const StackPlace base = by_sp ? state.sp : state.fp;
    if (row.cfa.kind != CfaRule::Kind::offset || base.base != Base::sp) return;
    ++reached;
    if (row.cfa.offset != k_entry_cfa - base.offset) return note(entry, pc, row, state);
    for (const FrameRow::Entry& entry_of_row : row.entries()) {
      const RegNum reg = entry_of_row.reg;
      if (reg >= k_register_places || entry_of_row.rule.kind != RegRule::Kind::at_cfa) continue;
      // A restored register is in both places.
      const int words = state.place_saved(reg);
      if (words != 0 && entry_of_row.rule.offset != -8 * std::int64_t{words} - k_entry_cfa)
        return note(entry, pc, row, state);
    }
    compare_return(pc, base, by_sp);
  }

 private:
  /// A path may go past a call that does not return. The rows differ then, and no guess is made.
  void compare_return(Addr pc, StackPlace base, bool by_sp) {
    MemoryWindow window;
    CodeState at_return;
    const auto first = [](const CodeState&, bool) { return true; };
    if (!CodeFlow(k_space, window, pc).reach_return(first, at_return)) return;
    const bool same_base = at_return.sp.base == (by_sp ? Base::sp : Base::fp);
    if (same_base && base.offset + at_return.sp.offset == 0) ++returned;
  }
  void note(Addr entry, Addr pc, const FrameRow& row, const CodeState& state) {
    std::ostringstream text;
    text << std::hex << entry << " + " << pc - entry << ": "
         << instruction_text({reinterpret_cast<const std::byte*>(pc), 15}, pc) << ": " << to_text(row, k_space.arch)
         << ", followed: sp " << std::dec << state.sp.offset << ", fp " << state.fp.offset;
    if (wrong.size() < 10) wrong.push_back(text.str());
  }
};

// A sanitizer's checks end in calls that do not return, and there are many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(JITUNWIND_CLANG_SANITIZER)
constexpr double k_least_returned = 0.3;
constexpr std::size_t k_most_starts = 8;  ///< they make code larger and slower, a dozen times each
#else
constexpr double k_least_returned = 0.75;
constexpr std::size_t k_most_starts = 200;
#endif

// covers: LU20
TEST(CodeFlow, SaysWhatTheCompilerSays) {
  Comparison comparison;
  std::size_t compared = 0;
  for (const AddrRange& procedure : procedures()) {
    // Parts of functions that lie elsewhere are entered in the middle. They may have a nop in front of a landing pad,
    // which no function begins with.
    const auto first = row_at(procedure.begin);
    const bool is_function = first && first->cfa == CfaRule::at(k_sp, k_entry_cfa) &&
                             first->rule(k_space.arch.ra).kind != RegRule::Kind::undefined &&
                             *reinterpret_cast<const std::uint8_t*>(procedure.begin) != 0x90;
    if (!is_function || procedure.size() > 20'000) continue;
    ++compared;
    const auto starts = instruction_starts(reinterpret_cast<const void*>(procedure.begin), procedure.size());
    // A part of a large procedure's instructions suffices, because each is reached from the entry anew.
    const std::size_t step = 1 + starts.size() / k_most_starts;
    for (std::size_t i = 0; i < starts.size(); i += step)
      if (const auto row = row_at(starts[i])) comparison.compare(procedure.begin, starts[i], *row);
  }
  EXPECT_GT(compared, 1000u);
  std::printf("%zu procedures, %zu instructions, %zu reached, %zu returned\n", compared, comparison.instructions,
              comparison.reached, comparison.returned);
  EXPECT_GT(comparison.reached, comparison.instructions * 3 / 4);
  // No path from the other instructions to a return can be followed: it leads through a jump table, or into a call that
  // does not return.
  EXPECT_GT(comparison.returned,
            static_cast<std::size_t>(k_least_returned * static_cast<double>(comparison.instructions)));
  EXPECT_TRUE(comparison.wrong.empty()) << testing::PrintToString(comparison.wrong);
}

/// Code made by hand at its own address.
struct Code {
  FakeMemory memory;
  NoModules modules;
  AddressSpace space{arch::x86_64, memory, modules, {}, {}};
  MemoryWindow window;

  void put(Addr at, std::initializer_list<std::uint8_t> bytes) {
    memory.put_bytes(at, std::as_bytes(std::span(bytes.begin(), bytes.size())));
  }
  bool reach(Addr from, Addr goal, CodeState& state) {
    return CodeFlow(space, window, from).reach(CodeAddress::interrupted(goal), state);
  }
  std::optional<StackPlace> way_out(Addr from) {
    CodeState state;
    const auto any = [](const CodeState&, bool) { return true; };
    return CodeFlow(space, window, from).reach_return(any, state) ? std::optional(state.sp) : std::nullopt;
  }
};

TEST(CodeFlow, FollowsStubsThroughMemory) {
  Code code;
  code.put(0x1000, {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x0f, 0, 0});  // endbr64; jmp [rip+0xff6]
  code.memory.put(0x2000, 0x7f0000003000);
  CodeState state;
  ASSERT_TRUE(code.reach(0x1000, 0x7f0000003000, state));
  EXPECT_TRUE(state.sp.is(Base::sp, 0));
  EXPECT_FALSE(code.reach(0x1000, 0x3000, state));
}

TEST(CodeFlow, EndsWhereNothingIsKnown) {
  Code code;
  CodeState state;
  EXPECT_FALSE(code.reach(0x1000, 0x1001, state)) << "not readable";
  EXPECT_TRUE(code.reach(0x1000, 0x1000, state)) << "already there";
  code.put(0x1000, {0x06, 0x90, 0xc3});
  EXPECT_FALSE(code.reach(0x1000, 0x1002, state)) << "not an instruction";
  code.put(0x1100, {0xeb, 0xfe});
  EXPECT_FALSE(code.reach(0x1100, 0x1102, state)) << "round and round";
  EXPECT_FALSE(code.way_out(0x1100));
  code.put(0x1200, {0x0f, 0x0b, 0xc3});
  EXPECT_FALSE(code.way_out(0x1200)) << "behind ud2";
  code.put(0x1300, {0x48, 0x01, 0xc4, 0xc3});
  EXPECT_FALSE(code.way_out(0x1300)) << "add rsp,rax";
}

// The mappings of a target tell which memory is data.
TEST(CodeFlow, FollowsNoData) {
  Code code;
  const Mappings mappings({{.range = {0x1000, 0x2000}, .executable = true}, {.range = {0x2000, 0x3000}}});
  const MappedMemory memory(code.memory, mappings);
  const AddressSpace space{arch::x86_64, memory, code.modules, {}, {}};
  code.put(0x1ff6, {0x5b, 0xc3});  // pop rbx; ret
  code.put(0x1ff8, {0x5b, 0x5b});  // pop rbx; pop rbx, and on into data: ret
  code.put(0x2000, {0xc3});
  code.put(0x1000, {0xe9, 0xfb, 0x0f, 0, 0});  // jmp 0x2000
  code.put(0x1100, {0x74, 0x01, 0xc3, 0xc3});  // jz +1; ret; ret
  for (Addr at = 0x1ffa; at < 0x2000; ++at) code.put(at, {0x90});
  const auto way_out = [&](Addr from) {
    CodeFlow flow(space, code.window, from);
    CodeState state;
    const auto any = [](const CodeState&, bool) { return true; };
    const bool is_found = flow.reach_return(any, state);
    EXPECT_TRUE(is_found || flow.met_data()) << std::hex << from;
    return is_found;
  };
  for (const Addr from : {0x1ff6u, 0x1ff7u, 0x1100u}) EXPECT_TRUE(way_out(from)) << std::hex << from;
  for (const Addr from : {0x1ff8u, 0x1fffu, 0x1000u, 0x2000u}) EXPECT_FALSE(way_out(from)) << std::hex << from;
  for (const Addr from : {0x1ff8u, 0x1fffu, 0x1000u, 0x2000u}) EXPECT_TRUE(code.way_out(from)) << "where nothing tells";
  code.put(0x1ffe, {0x48, 0xb8});  // mov rax, and half of its bytes are data
  for (Addr at = 0x2000; at < 0x2008; ++at) code.put(at, {0x90});
  EXPECT_FALSE(way_out(0x1ffe));
}

TEST(CodeFlow, EndsHoweverLongTheCodeIs) {
  Code code;
  for (Addr at = 0x10000; at < 0x20000; ++at) code.put(at, {0x90});
  code.put(0x20000, {0xc3});
  CodeState state;
  EXPECT_FALSE(code.reach(0x10000, 0x20000, state));
  EXPECT_FALSE(code.way_out(0x10000));
  EXPECT_TRUE(code.reach(0x1ff00, 0x20000, state));
  EXPECT_TRUE(code.way_out(0x1ff00));
}

TEST(CodeFlow, FindsWhereTheReturnAddressIs) {
  Code code;
  code.put(0x1000, {0x48, 0x83, 0xc4, 0x28, 0x5b, 0x41, 0x5c, 0xc3});  // add rsp,40; pop rbx; pop r12; ret
  EXPECT_TRUE(code.way_out(0x1000)->is(Base::sp, 56));
  EXPECT_TRUE(code.way_out(0x1007)->is(Base::sp, 0));
  code.put(0x1100, {0x90, 0xc9, 0xc3});  // nop; leave; ret
  EXPECT_TRUE(code.way_out(0x1100)->is(Base::fp, 8));
  EXPECT_TRUE(code.way_out(0x1102)->is(Base::sp, 0));
  code.put(0x1200, {0x48, 0x8d, 0x65, 0xf0, 0x5b, 0x41, 0x5c, 0x5d, 0xc3});  // lea rsp,[rbp-16]; pops; ret
  EXPECT_TRUE(code.way_out(0x1200)->is(Base::fp, 8));
  // jz +3; jmp -5; pop rbx; ret: the loop is left by the branch.
  code.put(0x1300, {0x74, 0x03, 0xeb, 0xfc, 0x90, 0x5b, 0xc3});
  EXPECT_TRUE(code.way_out(0x1300)->is(Base::sp, 8));
}

TEST(CodeFlow, KnowsWhatIsSavedAndWhatIsLost) {
  Code code;
  // push rbx; sub rsp,16; mov [rsp+8],r12; xor r12d,r12d; mov r13d,1; mov ebx,2; mov r12,[rsp+8]; nop
  code.put(0x1000, {0x53, 0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x64, 0x24, 0x08, 0x45, 0x31, 0xe4, 0x41, 0xbd,
                    1,    0,    0,    0,    0xbb, 2,    0,    0,    0,    0x4c, 0x8b, 0x64, 0x24, 0x08, 0x90});
  CodeState state;
  ASSERT_TRUE(code.reach(0x1000, 0x1018, state));
  EXPECT_TRUE(state.sp.is(Base::sp, -24));
  EXPECT_EQ(state.saved[3], 1);
  EXPECT_EQ(state.saved[12], 2);
  EXPECT_EQ(state.saved[13], 0);
  EXPECT_TRUE(!state.has_lost(3) && !state.has_lost(12) && state.has_lost(13));
  ASSERT_TRUE(code.reach(0x1000, 0x101d, state));
  EXPECT_EQ(state.saved[12], 0) << "restored";
}

// gcc 16 saves registers apart from each other on this CPU, too, and may have stored the register before as an
// uninitialised variable.
TEST(CodeFlow, DoesNotKnowARegisterThatIsStoredTwice) {
  Code code;
  // sub rsp,40; mov [rsp+8],r12; mov [rsp+24],r12; xor r12d,r12d; mov r12,[rsp+24]; nop
  code.put(0x1000, {0x48, 0x83, 0xec, 0x28, 0x4c, 0x89, 0x64, 0x24, 0x08, 0x4c, 0x89, 0x64,
                    0x24, 0x18, 0x45, 0x31, 0xe4, 0x4c, 0x8b, 0x64, 0x24, 0x18, 0x90});
  CodeState state;
  ASSERT_TRUE(code.reach(0x1000, 0x1009, state));
  EXPECT_EQ(state.saved[12], 4);
  ASSERT_TRUE(code.reach(0x1000, 0x100e, state));
  EXPECT_TRUE(state.saved[12] == 0 && !state.has_lost(12)) << "the register has it";
  for (const Addr goal : {Addr{0x1011}, Addr{0x1016}}) {
    ASSERT_TRUE(code.reach(0x1000, goal, state));
    EXPECT_TRUE(state.saved[12] == 0 && state.has_lost(12)) << goal;
  }
}

}  // namespace
}  // namespace jitunwind::test
