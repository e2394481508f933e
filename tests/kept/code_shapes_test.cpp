// Rules that are kept of one procedure hold for all of its shape. Few rows are made, and each is that of the code
// there.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "tests/rows/row_case.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {
namespace {

using rows::CaseProcedure;
using rows::CaseRegion;
using rows::k_code;

const Arch& k_arch = *host_arch();

void called() { asm volatile(""); }

std::int16_t number_of(RegNum reg) { return static_cast<std::int16_t>(k_arch.by_dwarf(reg)->libunwind); }
unw_dyn_op_t add_to_sp(std::int32_t when, std::int64_t bytes) {
  return _U_dyn_op(UNW_DYN_ADD, 0, when, number_of(k_arch.sp), static_cast<unw_word_t>(bytes));
}
unw_dyn_op_t saved_at(std::int32_t when, RegNum reg, std::int64_t above_sp) {
  return _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, when, number_of(reg), static_cast<unw_word_t>(above_sp));
}

/// The frame of `words` words below the return address, from the entry on.
std::vector<CaseRegion> frame_of(std::int64_t words) {
  std::vector<unw_dyn_op_t> ops{add_to_sp(-1, -8 * words - (k_arch.ra_in_memory ? 0 : 8))};
  if (!k_arch.ra_in_memory) ops.push_back(saved_at(-1, k_arch.ra, 8 * words));
  return {{0, ops, 0, -1}};
}

class Procedure {
 public:
  Procedure(const std::vector<CaseRegion>& regions, AddrRange code) : owned_(regions, code), info_(owned_.info()) {
    EXPECT_TRUE(register_procedure(&info_));
  }
  Procedure(const Procedure&) = delete;
  ~Procedure() { EXPECT_TRUE(cancel_procedure(&info_)); }
  AddrRange code() const { return {info_.start_ip, info_.end_ip}; }

 private:
  CaseProcedure owned_;
  unw_dyn_info_t info_;
};

/// A stack whose word i holds the i-th address of some code: callers that a walk believes in.
class NumberedStack {
 public:
  NumberedStack() {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = code_ + i;
  }

  /// Everything that one step from `pc` leads to.
  std::string step(const AddressSpace& space, Addr pc) const {
    RegisterFile registers;
    for (const RegisterInfo& reg : k_arch.registers)
      if (reg.column >= 0) registers.set(reg.column, code_ + 1);
    registers.set(k_arch.column(k_arch.pc), pc);
    registers.set(k_arch.column(k_arch.sp), sp());
    registers.set(k_arch.column(k_arch.fp), sp() + 96);
    Cursor cursor(space, registers, Cursor::Top::interrupted);
    std::string text = origin_name(cursor.origin());
    const auto moved = cursor.step();
    if (!moved || !*moved) return text + stop_reason_name(cursor.stop_reason());
    for (const RegisterInfo& reg : k_arch.registers) {
      const auto value = cursor.get(reg.dwarf);
      const SaveLocation place = cursor.location(reg.dwarf);
      if (value) text += std::string(" ") + reg.name + "=" + std::to_string(*value) + "@" + std::to_string(place.at);
    }
    return text;
  }
  std::string step(Addr pc) const { return step(local_space(), pc); }
  std::string true_step(Addr pc) const { return step(local_space_without_kept_rows(), pc); }

  /// How many words below its return address the frame at `pc` has, by a walk of addresses.
  Addr words_of(Addr pc) const {
    std::array<void*, 2> found{};
    const WalkStart start{CodeAddress::interrupted(pc), sp(), sp() + 96, nullptr};
    EXPECT_EQ(walk_addresses(local_space(), start, WalkPart::whole, found), found.size());
    return reinterpret_cast<Addr>(found[1]) - code_ - 1;
  }

 private:
  Addr sp() const { return reinterpret_cast<std::uintptr_t>(&words_[1]); }
  const Addr code_ = reinterpret_cast<std::uintptr_t>(&called);
  std::array<std::uint64_t, 64> words_;
};

/// Rows that were made. Those that no rule says are made each time: a link register is not saved in the first
/// instructions.
std::uint64_t made_rows() { return counted(Counter::row_made) - counted(Counter::row_not_compact); }

constexpr Addr k_distance = 1024;
Addr place(std::size_t i) { return k_code + k_distance * i; }

/// A frame that a prologue makes step by step and that goes away `tail` instructions before the end; no tail: it stays.
std::vector<CaseRegion> random_frame(std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  std::vector<unw_dyn_op_t> prologue, body;
  std::int32_t when = -1;
  std::vector<RegNum> saved;
  for (const RegisterInfo& reg : k_arch.registers)
    if (reg.preserved && reg.dwarf != k_arch.sp && below(2) == 0) saved.push_back(reg.dwarf);
  if (!k_arch.ra_in_memory) saved.insert(saved.begin(), k_arch.ra);
  for (const RegNum reg : saved) {
    when += 1 + below(2);
    prologue.push_back(add_to_sp(when, -8));
    prologue.push_back(saved_at(when, reg, 0));
  }
  const std::int64_t locals = 8 * below(4);
  body.push_back(add_to_sp(below(3), -locals));
  std::vector<CaseRegion> regions{{when + 1 + below(3), prologue, 0, -1}, {4 + below(4), body, 0, -1}};
  if (const std::int32_t tail = below(3); tail != 0)
    regions.push_back({-tail, {_U_dyn_op(UNW_DYN_POP_FRAMES, 0, 0, 0, 1)}, 0, -1});
  return regions;
}

TEST(CodeShapes, HaveTheRowsOfTheirDescriptions) {
  std::mt19937 random(7);
  std::vector<std::vector<CaseRegion>> frames;
  for (int i = 0; i < 12; ++i) frames.push_back(random_frame(random));
  std::deque<Procedure> live;
  for (std::size_t i = 0; i < 240; ++i)
    live.emplace_back(frames[random() % frames.size()],
                      AddrRange{place(i), place(i) + (40 + random() % 40) * k_arch.unit});
  const NumberedStack stack;
  const std::uint64_t made = made_rows();
  std::size_t steps = 0, wrong = 0;
  for (int round = 0; round < 2; ++round) {
    for (const Procedure& procedure : live) {
      for (Addr at = procedure.code().begin; at < procedure.code().end; at += k_arch.unit, ++steps) {
        if (stack.step(at) != stack.true_step(at)) ++wrong;
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << steps;
  EXPECT_LT(made_rows() - made, steps / 8);
}

/// More than any table by addresses has room for.
TEST(CodeShapes, AnswerForAsManyProceduresAsThereAre) {
  constexpr std::size_t k_count = 20'000;
  std::deque<Procedure> live;
  for (std::size_t i = 0; i < k_count; ++i) live.emplace_back(frame_of(5), AddrRange{place(i), place(i) + 64});
  const NumberedStack stack;
  const std::string expected = stack.true_step(place(0) + 8);
  const std::uint64_t made = made_rows();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < k_count; ++i) {
      ASSERT_EQ(stack.words_of(place(i) + 16), 5u) << i;
      ASSERT_EQ(stack.step(place(i) + 16), expected) << i;
    }
  }
  // Rules of the procedures, and of the code that they return to.
  EXPECT_LT(made_rows() - made, 100u);
}

/// Code in table format: one FDE of a frame of `words` words behind so many instructions, with a CIE of its own.
class TableProcedure {
 public:
  /// The place that says the frame's size, and whether the CIE is of the form that compilers write.
  enum class Form { plain, in_cie, in_usual_cie };

  TableProcedure(std::int64_t words, AddrRange code, std::uint32_t behind = 2, const Bytes& more = {},
                 Form form = Form::plain, Addr left_out = 0) {
    const auto sp = static_cast<std::uint8_t>(k_arch.sp), ra = static_cast<std::uint8_t>(0x80 | k_arch.ra);
    const auto frame_size = static_cast<std::uint8_t>(8 * words + 8);
    const std::uint8_t at_entry = k_arch.ra_in_memory ? 8 : 0;
    CfiSection section(reinterpret_cast<std::uintptr_t>(bytes_.data()));
    CieSpec spec;
    if (form == Form::in_usual_cie) spec.augmentation = "z";
    spec.code_alignment = k_arch.unit;
    spec.return_address = k_arch.ra;
    Bytes frame = form == Form::in_usual_cie ? Bytes{0} : Bytes{};  // no augmentation data
    frame.add(Bytes{0x04}.u32(behind));
    if (form == Form::plain) frame.add(Bytes{0x0e, frame_size});
    spec.instructions = Bytes{0x0c, sp, form == Form::plain ? at_entry : frame_size};
    (k_arch.ra_in_memory ? spec.instructions : frame).add(Bytes{ra, 1});
    frame.add(more);
    const Addr cie = section.cie(spec);
    pair_ = {code.begin, section.fde(cie, code.begin, code.size() - left_out, frame)};
    const auto written = section.section().bytes;
    EXPECT_LE(written.size(), bytes_.size());
    std::memcpy(bytes_.data(), written.data(), written.size());
    info_.start_ip = code.begin;
    info_.end_ip = code.end;
    info_.format = UNW_INFO_FORMAT_REMOTE_TABLE_64;
    info_.u.rti.table_len = sizeof pair_ / sizeof(unw_word_t);
    info_.u.rti.table_data = reinterpret_cast<std::uintptr_t>(pair_.data());
    EXPECT_TRUE(register_procedure(&info_));
  }
  TableProcedure(const TableProcedure&) = delete;
  ~TableProcedure() { EXPECT_TRUE(cancel_procedure(&info_)); }

 private:
  std::array<std::byte, 128> bytes_{};
  std::array<std::uint64_t, 2> pair_{};
  unw_dyn_info_t info_{};
};

TEST(CodeShapes, AreThoseOfFdesWithEqualInstructions) {
  constexpr std::size_t k_count = 300;
  std::deque<TableProcedure> live;
  for (std::size_t i = 0; i < k_count; ++i)
    live.emplace_back(static_cast<std::int64_t>(i % 5), AddrRange{place(i), place(i) + (8 + i % 3) * k_arch.unit});
  const NumberedStack stack;
  const std::uint64_t made = made_rows();
  std::size_t steps = 0;
  for (std::size_t i = 0; i < k_count; ++i) {
    for (Addr at = place(i); at < place(i) + 8 * k_arch.unit; at += k_arch.unit, ++steps)
      ASSERT_EQ(stack.step(at), stack.true_step(at)) << i << " " << at - place(i);
    ASSERT_EQ(stack.words_of(place(i) + 4 * k_arch.unit), i % 5) << i;
  }
  EXPECT_LT(made_rows() - made, steps / 8);
}

/// Only the CIE differs, in the same bytes of memory: a CIE that was read before counts by what it says.
TEST(CodeShapes, AreThoseOfTheCieThatIsThereNow) {
  const AddrRange code{place(0), place(0) + 16 * k_arch.unit};
  const NumberedStack stack;
  using Form = TableProcedure::Form;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t words = i % 3;
    const TableProcedure procedure(words, code, 2, {}, i % 4 < 2 ? Form::in_cie : Form::in_usual_cie);
    for (int time = 0; time < 2; ++time)
      ASSERT_EQ(stack.words_of(code.begin + 4 * k_arch.unit), static_cast<Addr>(words)) << i;
    ASSERT_EQ(stack.step(code.begin + 4 * k_arch.unit), stack.true_step(code.begin + 4 * k_arch.unit)) << i;
  }
}

/// The answer of the sources to one who takes rows of either form.
RowAnswer answer_at(Addr pc) {
  MemoryWindow window;
  Lookup lookup{local_space(), CodeAddress::interrupted(pc), window};
  FrameRow room;
  AnyRow row(room, &local_space().row_cache->layout);
  return local_space().find_any_row(lookup, row);
}

/// Two FDEs have the same instructions, and one ends in front of its procedure's end.
TEST(CodeShapes, AreOfNoFdeThatLeavesCodeOut) {
  const auto code = [](std::size_t i) { return AddrRange{place(i), place(i) + 16 * k_arch.unit}; };
  using Form = TableProcedure::Form;
  for (const Form form : {Form::in_cie, Form::in_usual_cie}) {
    const TableProcedure whole(4, code(0), 2, {}, form), part(4, code(1), 2, {}, form, 8 * k_arch.unit);
    const NumberedStack stack;
    EXPECT_EQ(answer_at(code(0).end - k_arch.unit), RowAnswer::compact);
    EXPECT_EQ(answer_at(code(1).end - k_arch.unit), RowAnswer::none);
    for (int round = 0; round < 2; ++round)
      for (const AddrRange range : {code(0), code(1)})
        for (Addr at = range.begin; at < range.end; at += k_arch.unit)
          ASSERT_EQ(stack.step(at), stack.true_step(at)) << range.begin << " " << at - range.begin;
    EXPECT_NE(stack.true_step(code(0).end - k_arch.unit), stack.true_step(code(1).end - k_arch.unit));
  }
}

/// Instructions with an address of their own, behind the end of one procedure and inside of others.
TEST(CodeShapes, AreOfNoFdeWithAddresses) {
  const Addr behind = place(1) + 20 * k_arch.unit;
  const Bytes more = Bytes{0x40 | 10, 0x01}.u64(behind).add(Bytes{0x0e, 64});
  const auto code = [](std::size_t i, Addr units) { return AddrRange{place(i), place(i) + units * k_arch.unit}; };
  const TableProcedure first(5, code(0, 8), 2, more), second(5, code(1, 40), 2, more), third(5, code(2, 40), 2, more);
  const NumberedStack stack;
  for (int round = 0; round < 2; ++round)
    for (const AddrRange range : {code(0, 8), code(1, 40), code(2, 40)})
      for (Addr at = range.begin; at < range.end; at += k_arch.unit)
        ASSERT_EQ(stack.step(at), stack.true_step(at)) << range.begin << " " << at - range.begin;
}

/// Code that is too far from the begin of its procedure has no place in a shape.
TEST(CodeShapes, AreOfNoCodeThatIsTooFarAway) {
  constexpr std::uint32_t k_far = 1u << 24;
  const TableProcedure procedure(5, {k_code, k_code + (k_far + 64) * k_arch.unit}, k_far + 16);
  const NumberedStack stack;
  for (const std::uint32_t position : {4u, k_far - 2, k_far + 4, k_far + 32}) {
    const Addr at = k_code + position * k_arch.unit;
    ASSERT_EQ(stack.step(at), stack.true_step(at)) << position;
  }
  EXPECT_EQ(stack.words_of(k_code + (k_far + 32) * k_arch.unit), 5u);
}

/// Shapes in turns, at one address, and over each other.
TEST(CodeShapes, AreThoseOfTheCodeThatIsThereNow) {
  const NumberedStack stack;
  const AddrRange code{place(0), place(0) + 64};
  const Addr pc = code.begin + 32;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::int64_t words = i % 3, over = i % 7;
    const Procedure older(frame_of(words), code);
    for (int time = 0; time < 2; ++time) ASSERT_EQ(stack.words_of(pc), static_cast<Addr>(words)) << i;
    {
      const Procedure newer(frame_of(over), {pc, pc + 16});
      ASSERT_EQ(stack.words_of(pc), static_cast<Addr>(over)) << i;
      ASSERT_EQ(stack.step(pc), stack.true_step(pc)) << i;
      ASSERT_EQ(stack.words_of(pc - 4), static_cast<Addr>(words)) << i;
    }
    ASSERT_EQ(stack.words_of(pc), static_cast<Addr>(words)) << i;
    ASSERT_EQ(stack.step(pc), stack.true_step(pc)) << i;
  }
}

/// A list of one region that descriptors share, whose owner writes another one to the same memory.
class SharedList {
 public:
  void write(std::int64_t words, std::int32_t units) {
    const CaseRegion frame = frame_of(words)[0];
    region_ = new (memory_.data()) unw_dyn_region_info_t{};
    region_->insn_count = units;
    region_->op_count = static_cast<std::uint32_t>(frame.ops.size());
    std::ranges::copy(frame.ops, region_->op);
  }
  unw_dyn_info_t procedure(AddrRange code, unw_word_t handler = 0) const {
    unw_dyn_info_t info{};
    info.start_ip = code.begin, info.end_ip = code.end;
    info.format = UNW_INFO_FORMAT_DYNAMIC;
    info.u.pi.handler = handler;
    info.u.pi.regions = region_;
    return info;
  }

 private:
  alignas(unw_dyn_region_info_t) std::array<std::byte, 256> memory_{};
  unw_dyn_region_info_t* region_ = nullptr;
};

/// Another list may be where one was, in procedures of other lengths, with and without a personality routine.
TEST(CodeShapes, AreThoseOfTheListThatIsThereNow) {
  SharedList list;
  const NumberedStack stack;
  constexpr Addr k_few = 16, k_many = 40;
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t words = i % 3;
    list.write(words, static_cast<std::int32_t>(i % 4 < 2 ? k_few : k_many));
    std::array<unw_dyn_info_t, 6> infos;
    for (std::size_t n = 0; n < infos.size(); ++n) {
      const Addr units = n % 2 == 0 ? k_many : k_few;
      infos[n] = list.procedure({place(n), place(n) + units * k_arch.unit}, n % 3 == 2 ? place(n) : 0);
      ASSERT_TRUE(register_procedure(&infos[n]));
    }
    for (std::size_t n = 0; n < infos.size(); ++n) {
      const Addr pc = place(n) + 4 * k_arch.unit;
      ASSERT_EQ(stack.words_of(pc), static_cast<Addr>(words)) << i << " " << n;
      ASSERT_EQ(stack.step(pc), stack.true_step(pc)) << i << " " << n;
      // The walk of the first one noted the list with its registration, which is gone from now on.
      if (n == 0) {
        ASSERT_TRUE(cancel_procedure(infos.data()));
      }
    }
    for (std::size_t n = 1; n < infos.size(); ++n) ASSERT_TRUE(cancel_procedure(&infos[n]));
  }
}

/// A description that was changed in place counts once its rows are forgotten, though its former list is known.
TEST(CodeShapes, AreThoseOfTheListThatADescriptionWasGiven) {
  SharedList list, other;
  constexpr Addr k_units = 16;
  list.write(1, k_units);
  other.write(2, k_units);
  const NumberedStack stack;
  std::array<unw_dyn_info_t, 2> infos;
  for (std::size_t n = 0; n < infos.size(); ++n) {
    infos[n] = list.procedure({place(n), place(n) + k_units * k_arch.unit});
    ASSERT_TRUE(register_procedure(&infos[n]));
  }
  const auto words_of = [&](std::size_t n) { return stack.words_of(place(n) + 4 * k_arch.unit); };
  ASSERT_EQ(words_of(0), Addr{1});
  infos[1].u.pi.regions = other.procedure({}).u.pi.regions;
  forget_rows(infos[1].start_ip, infos[1].end_ip);
  EXPECT_EQ(words_of(0), Addr{1});
  EXPECT_EQ(words_of(1), Addr{2});
  for (unw_dyn_info_t& info : infos) ASSERT_TRUE(cancel_procedure(&info));
}

/// A row is made at once, of the registration that its place is of. A place is never told without its row: another
/// source may know other code by then.
TEST(CodeShapes, HaveAPlaceAndARowOfOneRegistration) {
  const RowCache& rows = *local_space().row_cache;
  const auto table = std::make_unique<KeptRules::Table>();
  const AlikeRules rules{registered_shapes(), *table};
  const AddrRange code{place(0), place(0) + 64};
  const Addr pc = code.begin + 32;
  FrameRow room;
  const auto ask = [&](NewRow& row) { return registered_shapes().find_rule(pc, rules, row); };
  const auto has_neither = [&] {
    NewRow row(room, &rows.layout);
    return ask(row).kept_by() == KeptBy::nothing && !row.is_made && !row.alike;
  };
  EXPECT_TRUE(has_neither()) << "nothing is registered";
  const Procedure below(frame_of(31), code);
  for (int time = 0; time < 2; ++time) {
    NewRow row(room, &rows.layout);
    EXPECT_EQ(ask(row).kept_by(), KeptBy::nothing);
    ASSERT_TRUE(row.is_made && row.alike) << "whether its shape is noted or not";
    EXPECT_EQ(row.compact.cfa_words, 32u);
    EXPECT_EQ(room.origin, RowOrigin::dyn_directives);
    EXPECT_EQ(room.range, code);
    if (time == 0) continue;
    const CallerRule rule = rows.rule_of(row.compact, room.origin, KeptBy::lasting);
    EXPECT_TRUE(AlikeRules::keep_first(row.alike, rule));
  }
  const auto in_register = static_cast<unw_word_t>(number_of(k_arch.fp));
  for (const unw_dyn_op_t& other : {_U_dyn_op(UNW_DYN_ALIAS, 0, -1, 0, place(1)),
                                    _U_dyn_op(UNW_DYN_SAVE_REG, 0, -1, number_of(k_arch.ra), in_register)}) {
    const Procedure above({{0, {other}, 0, -1}}, code);
    EXPECT_TRUE(has_neither()) << "no short form says its row";
    EXPECT_TRUE(has_neither()) << "its shape is noted";
  }
  NewRow row(room, &rows.layout);
  EXPECT_EQ(ask(row).cfa_words(), 32u);
  EXPECT_FALSE(row.is_made || row.alike) << "there is a rule";
}

/// More shapes than have room: the others are kept by their addresses.
TEST(CodeShapes, MayBeMoreThanHaveRoom) {
  const NumberedStack stack;
  std::deque<Procedure> live;
  constexpr std::size_t k_count = 6000;
  for (std::size_t i = 0; i < k_count; ++i) {
    auto regions = frame_of(static_cast<std::int64_t>(i % 40));
    regions[0].insn_count = static_cast<std::int32_t>(1 + i / 40);
    live.emplace_back(regions, AddrRange{place(i), place(i) + 250 * k_arch.unit});
  }
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < k_count; ++i) ASSERT_EQ(stack.words_of(place(i) + 4), i % 40) << i;
}

}  // namespace
}  // namespace jitunwind::test
