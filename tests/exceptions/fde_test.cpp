// The FDEs that the unwinder gets: what they say, judged by another reader; what is refused; how long they live.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/exceptions/jit_frames.h"

extern "C" const void* _Unwind_Find_FDE(const void* pc, void* bases);

namespace jitunwind::test {
namespace {

struct Bases {
  Addr text = 1, data = 1, function = 1;
};

const void* find_fde(Addr pc, Bases& bases) { return _Unwind_Find_FDE(reinterpret_cast<const void*>(pc), &bases); }

struct FdeAt {
  explicit FdeAt(Addr pc) {
    Bases bases;
    pointer = find_fde(pc, bases);
    function = bases.function;
    data = bases.data;
    if (!pointer) return;
    MemoryView view(memory, window, {});
    const auto read = read_fde(view, context, reinterpret_cast<std::uintptr_t>(pointer));
    EXPECT_TRUE(read) << read.error().what;
    if (!read) return;
    fde = *read;
    // libgcc's FDE is of the function that is said beside it, whatever it says itself.
    const ProcedureHold procedure(pc);
    if (fde->range.begin == 0 && procedure.info()) fde->range = {function, procedure.info()->end_ip};
  }
  std::string row_at(Addr pc) const {
    FrameRow row;
    if (!fde) return "no FDE";
    const Status made = jitunwind::row_at(*fde, context, pc, row);
    return made ? to_text(row, *host_arch()) : std::string("error: ") + made.error().what;
  }

  LocalMemory memory;
  MemoryWindow window;
  CfiContext context{*host_arch()};
  const void* pointer = nullptr;
  std::optional<Fde> fde;
  Addr function = 0;
  Addr data = 0;
};

std::string registered_row(Addr pc) {
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(pc), window);
  FrameRow row;
  const Found found = dyn_row_source().find_row(lookup, row);
  if (!found) return found.error().what;
  return *found ? to_text(row, *host_arch()) : "no row";
}

/// The row of the FDE is the registered one, but for what its reader cannot tell: a dereference is an expression there.
class EncodedRows : public testing::TestWithParam<FrameKind> {};

TEST_P(EncodedRows, AreTheRegisteredOnes) {
  const FrameOfKind frame(GetParam());
  const FdeAt found(frame.begin() + 3);
  ASSERT_TRUE(found.fde);
  EXPECT_EQ(found.function, frame.begin());
  EXPECT_EQ(found.fde->range, (AddrRange{frame.begin(), frame.begin() + frame.size()}));
  std::size_t different = 0;
  for (Addr pc = frame.begin(); pc < frame.begin() + frame.size(); ++pc) {
    EXPECT_EQ(FdeAt(pc).row_at(pc), registered_row(pc)) << pc - frame.begin();
    different += FdeAt(pc).row_at(pc) != found.row_at(frame.begin());
  }
  EXPECT_GT(different, frame.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Frames, EncodedRows, testing::ValuesIn(k_frame_kinds),
                         [](const auto& kind) { return name_of(kind.param); });

constexpr Addr k_code = 0x200'0000'0000;
constexpr Addr k_handler = 0x7777'1234'5678;
constexpr Addr k_lsda = 0x7666'1234'5678;

auto described(std::size_t size) {
  using namespace x86_64;
  return describe("described").push({0, 1}, rbx).pop({-2, -1}, rbx).size(size);
}

// covers: DY18
TEST(Fde, HasPersonalityAndLsda) {
  const auto description = described(16).personality(k_handler).lsda(k_lsda).build().value();
  const Registration live = register_code(description, Code{k_code, 16}).value();
  const FdeAt found(k_code + 4);
  ASSERT_TRUE(found.fde);
  EXPECT_EQ(found.fde->cie.personality.value, k_handler);
  EXPECT_FALSE(found.fde->cie.personality.indirect);
  EXPECT_EQ(found.fde->lsda.value, k_lsda);
  EXPECT_EQ(found.fde->cie.pointer_encoding, 0);
  EXPECT_EQ(found.fde->cie.lsda_encoding, 0);
  const auto distance = reinterpret_cast<std::uintptr_t>(found.pointer) - found.fde->cie.address;
  EXPECT_LT(distance, 1u << 31);

  const auto rows = x86_64::describe("rows").personality(k_handler).lsda(k_lsda).row_at(0, "cfa=rsp+8 ra=[cfa-8]");
  const Registration as_rows = register_code(rows.build().value(), Code{k_code + 64, 16}).value();
  const FdeAt table(k_code + 64 + 4);
  ASSERT_TRUE(table.fde);
  EXPECT_EQ(table.fde->cie.personality.value, k_handler);
  EXPECT_EQ(table.fde->lsda.value, k_lsda);
}

TEST(Fde, WithoutPersonalityHasNone) {
  const Registration live =
      register_code(described(16).build().value(), Code{.start = k_code, .size = 16, .lsda = k_lsda}).value();
  const FdeAt found(k_code);
  ASSERT_TRUE(found.fde);
  EXPECT_EQ(found.fde->cie.personality.value, 0u);
  EXPECT_EQ(found.fde->lsda.value, 0u);
}

TEST(Fde, IsTheSameEveryTime) {
  const Registration live = register_code(described(16).build().value(), Code{k_code, 16}).value();
  const FdeAt first(k_code), again(k_code + 13);
  EXPECT_NE(first.pointer, nullptr);
  EXPECT_EQ(first.pointer, again.pointer);
  EXPECT_EQ(FdeAt(k_code + 16).pointer, nullptr);
}

TEST(Fde, GoesWithTheProcedure) {
  Registration live = register_code(described(16).build().value(), Code{k_code, 16}).value();
  ASSERT_NE(FdeAt(k_code).pointer, nullptr);
  ASSERT_TRUE(live.cancel());
  EXPECT_EQ(FdeAt(k_code).pointer, nullptr);
  live = register_code(described(24).personality(k_handler).build().value(), Code{k_code, 24}).value();
  const FdeAt next(k_code);
  ASSERT_TRUE(next.fde);
  EXPECT_EQ(next.fde->range.size(), 24u);
  EXPECT_EQ(next.fde->cie.personality.value, k_handler);
  ASSERT_TRUE(live.retire());
  EXPECT_EQ(FdeAt(k_code).pointer, nullptr);
}

/// The newest procedure answers, also when an older one has answered before.
TEST(Fde, IsThatOfTheNewestProcedure) {
  const Registration old = register_code(described(64).build().value(), Code{k_code, 64}).value();
  ASSERT_EQ(FdeAt(k_code + 8).fde->range.size(), 64u);
  {
    const Registration newer = register_code(described(16).build().value(), Code{k_code, 16}).value();
    EXPECT_EQ(FdeAt(k_code + 8).fde->range.size(), 16u);
    EXPECT_EQ(FdeAt(k_code + 20).fde->range.size(), 64u);
  }
  EXPECT_EQ(FdeAt(k_code + 8).fde->range.size(), 64u);
}

/// The memory of cancelled procedures' FDEs is used again.
TEST(Fde, MemoryDoesNotGrow) {
  const auto description = described(16).build().value();
  const auto use = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Registration live = register_code(description, Code{k_code, 16}).value();
      ASSERT_NE(FdeAt(k_code).pointer, nullptr);
    }
  };
  use(200);
  const std::size_t before = registry_statistics().library_bytes;
  use(5000);
  EXPECT_EQ(registry_statistics().library_bytes, before);
}

TEST(Fde, OneForEachOfManyProcedures) {
  constexpr std::size_t k_count = 20'000;
  const auto description = described(16).build().value();
  std::vector<Registration> live;
  for (std::size_t i = 0; i < k_count; ++i)
    live.push_back(register_code(description, Code{k_code + 32 * i, 16}).value());
  for (std::size_t i = 0; i < k_count; ++i) {
    const FdeAt found(k_code + 32 * i + 5);
    ASSERT_TRUE(found.fde) << i;
    ASSERT_EQ(found.fde->range.begin, k_code + 32 * i);
  }
}

void expect_rows_of_registered(AddrRange code) {
  for (Addr pc = code.begin; pc < code.end; ++pc) {
    const FdeAt found(pc);
    ASSERT_TRUE(found.fde) << pc - code.begin;
    EXPECT_EQ(found.function, code.begin);
    EXPECT_EQ(found.row_at(pc), registered_row(pc)) << pc - code.begin;
  }
}

/// The shape's FDE covers the code up to a region that is counted from the end. That region has an FDE of its own for
/// the whole code.
TEST(Fde, OfAShapeIsOneForProceduresOfAnyLength) {
  using namespace x86_64;
  const auto description = describe("shape").push({0, 1}, rbx).pop({-2, -1}, rbx).build().value();
  std::vector<Registration> live;
  std::set<const void*> fronts, ends;
  for (const std::size_t size : {3u, 16u, 24u, 4096u}) {
    const Addr begin = k_code + 8192 * live.size();
    live.push_back(register_code(description, Code{begin, size}).value());
    fronts.insert(FdeAt(begin).pointer);
    expect_rows_of_registered({begin, begin + size});
    ends.insert(FdeAt(begin + size - 1).pointer);
    expect_rows_of_registered({begin, begin + size});
  }
  EXPECT_EQ(fronts.size(), 1u);
  EXPECT_EQ(ends.size(), 4u);
  EXPECT_EQ(fronts.count(nullptr) + ends.count(nullptr), 0u);
}

/// push rbx in front of `at`; then SP moves by `bytes`.
struct HandMade {
  HandMade(Addr begin, std::int32_t at, std::uint64_t bytes)
      : ops{_U_dyn_op(UNW_DYN_ADD, 0, at, 7, static_cast<unw_word_t>(-8)), _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, at, 3, 0),
            _U_dyn_op(UNW_DYN_ADD, 0, 8, 7, 0 - bytes), _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0)} {
    region = {{&last, 16, 4, {ops[0]}}, {ops[1], ops[2], ops[3]}};
    last = {nullptr, -4, 1, {_U_dyn_op(UNW_DYN_POP_FRAMES, 0, 3, 0, 1)}};
    info.start_ip = begin;
    info.end_ip = begin + 32;
    info.u.pi.regions = &region.head;
  }
  HandMade(const HandMade&) = delete;
  ~HandMade() { EXPECT_TRUE(cancel_procedure(&info)); }
  FdeAt registered() {
    EXPECT_TRUE(register_procedure(&info));
    expect_rows_of_registered({info.start_ip, info.end_ip - 4});
    return FdeAt(info.start_ip + 8);
  }

  unw_dyn_op_t ops[4];
  struct {
    unw_dyn_region_info_t head;
    unw_dyn_op_t more[3];
  } region;
  unw_dyn_region_info_t last;
  unw_dyn_info_t info{};
};

TEST(Fde, OfAShapeIsOneForDirectivesThatAreAlikeWhereverTheyLie) {
  HandMade first(k_code, 0, 16), second(k_code + 64, 0, 16), longer(k_code + 128, 0, 16), later(k_code + 192, 1, 16),
      larger(k_code + 256, 0, 24), handled(k_code + 320, 0, 16), of_gp(k_code + 384, 0, 16),
      behind(k_code + 448, 0, 16);
  longer.info.end_ip += 16;
  handled.info.u.pi.handler = k_handler;
  of_gp.info.gp = 0x1234;
  behind.region.head.insn_count = 17;
  const void* const shared = first.registered().pointer;
  EXPECT_EQ(second.registered().pointer, shared);
  EXPECT_EQ(longer.registered().pointer, shared);
  std::set<const void*> others;
  for (HandMade* const other : {&later, &larger, &handled, &of_gp, &behind}) others.insert(other->registered().pointer);
  EXPECT_EQ(others.size(), 5u);
  EXPECT_EQ(others.count(shared) + others.count(nullptr), 0u);
  EXPECT_EQ(FdeAt(of_gp.info.start_ip).data, 0x1234u);
}

/// Code at one address, of one description and of another in turns.
TEST(Fde, OfAShapeIsThatOfTheCodeThatIsThereNow) {
  std::array<const void*, 2> known{};
  for (int i = 0; i < 1000; ++i) {
    const int turn = i % 2;
    HandMade code(k_code, 0, turn == 0 ? 16 : 24);
    ASSERT_TRUE(register_procedure(&code.info));
    const FdeAt found(k_code + 12);
    ASSERT_TRUE(found.fde);
    ASSERT_EQ(found.row_at(k_code + 12), registered_row(k_code + 12));
    if (i >= 2) {
      ASSERT_EQ(found.pointer, known[static_cast<std::size_t>(turn)]);
    }
    known[static_cast<std::size_t>(turn)] = found.pointer;
  }
  EXPECT_NE(known[0], known[1]);
}

/// More shapes than there is room for, in a process of their own.
TEST(Fde, OfOneOfManyShapesIsRight) {
  const auto ask_all = [] {
    std::vector<std::unique_ptr<HandMade>> all;
    for (std::uint64_t i = 0; i < 6000; ++i) {
      all.push_back(std::make_unique<HandMade>(k_code + 64 * i, 0, 8 * i));
      EXPECT_TRUE(register_procedure(&all.back()->info));
    }
    for (int again = 0; again < 2; ++again) {
      for (const auto& one : all) {
        const Addr pc = one->info.start_ip + 12;
        EXPECT_EQ(FdeAt(pc).row_at(pc), registered_row(pc));
      }
    }
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(ask_all(), testing::ExitedWithCode(0), "");
}

/// Shapes stay when their code is replaced. They leave room for the FDEs of later code.
TEST(Fde, OfReplacedCodeHasRoomHoweverManyShapesThereWere) {
  const auto replace_all = [] {
    for (std::uint64_t i = 0; i < 6000; ++i) {
      HandMade one(k_code, 0, 8 * i);
      EXPECT_TRUE(register_procedure(&one.info));
      EXPECT_EQ(FdeAt(k_code + 12).row_at(k_code + 12), registered_row(k_code + 12)) << i;
      if (testing::Test::HasFailure()) break;
    }
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(replace_all(), testing::ExitedWithCode(0), "");
}

/// A procedure with so many early returns that the usual room does not suffice.
TEST(Fde, MayBeLong) {
  using namespace x86_64;
  auto builder = describe("long").push({0, 1}, rbx).remember();
  for (std::int64_t at = 16; at < 4096; at += 16) builder.pop({at, at + 1}, rbx).restore({at + 1, at + 2});
  const auto description = builder.size(4096 + 16).ends_without_return().build();
  ASSERT_TRUE(description) << description.error().text();
  const Registration live = register_code(*description, Code{k_code, 4096 + 16}).value();
  const FdeAt found(k_code);
  ASSERT_TRUE(found.fde);
  for (Addr pc = k_code; pc < k_code + 4096; pc += 5) ASSERT_EQ(found.row_at(pc), registered_row(pc));
}

/// Slots that are no multiples of a word.
TEST(Fde, SlotsMayLieAnywhere) {
  const auto rows = x86_64::describe("rows").row_at(0, "cfa=rsp+20 rbx=[cfa-13] ra=[cfa-8]").build().value();
  const Registration live = register_code(rows, Code{k_code, 16}).value();
  EXPECT_EQ(FdeAt(k_code).row_at(k_code), registered_row(k_code));
  unw_dyn_op_t ops[]{_U_dyn_op(UNW_DYN_ADD, 0, 0, 7, static_cast<unw_word_t>(-13)),
                     _U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, 3, 0), _U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0)};
  struct {
    unw_dyn_region_info_t head;
    unw_dyn_op_t more[2];
  } region{{nullptr, 16, 3, {ops[0]}}, {ops[1], ops[2]}};
  unw_dyn_info_t info{};
  info.start_ip = k_code + 64;
  info.end_ip = k_code + 80;
  info.u.pi.regions = &region.head;
  ASSERT_TRUE(register_procedure(&info));
  EXPECT_EQ(FdeAt(k_code + 70).row_at(k_code + 70), registered_row(k_code + 70));
  EXPECT_TRUE(cancel_procedure(&info));
}

TEST(Fde, FollowsAlias) {
  const FrameOfKind original(FrameKind::plain);
  const auto description = x86_64::describe("alias").alias(original.begin()).size(original.size()).build();
  ASSERT_TRUE(description) << description.error().text();
  const Registration live = register_code(*description, Code{k_code, original.size()}).value();
  const FdeAt found(k_code + 5);
  ASSERT_TRUE(found.fde);
  EXPECT_EQ(found.function, k_code);
  for (Addr i = 0; i < original.size(); ++i) EXPECT_EQ(found.row_at(k_code + i), registered_row(original.begin() + i));
}

/// A table of FDEs of its own: they are handed out as they are.
TEST(Fde, OfATableIsTheTablesOwn) {
  FrameRow row = entry_row(*host_arch());
  std::array<std::byte, 512> bytes{};
  EhFrameWriter writer(*host_arch(), bytes);
  writer.begin_cie({});
  std::array<std::size_t, 3> places{};
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = writer.size();
    writer.begin_fde({k_code + 32 * i, k_code + 32 * i + 20}, 0);
    ASSERT_TRUE(writer.row(0, row));
    writer.end_fde();
  }
  writer.terminate();
  const auto base = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::array<std::int32_t, 6> table{};
  for (std::size_t i = 0; i < places.size(); ++i) {
    table[2 * i] = static_cast<std::int32_t>(32 * i);
    table[2 * i + 1] = static_cast<std::int32_t>(places[i]);
  }
  unw_dyn_info_t info{};
  info.start_ip = k_code;
  info.end_ip = k_code + 96;
  info.gp = 0x1234;
  info.format = UNW_INFO_FORMAT_IP_OFFSET;
  info.u.rti.segbase = base;
  info.u.rti.table_len = 3;
  info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(table.data());
  ASSERT_TRUE(register_procedure(&info));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const FdeAt found(k_code + 32 * i + 19);
    EXPECT_EQ(found.pointer, bytes.data() + places[i]);
    EXPECT_EQ(found.function, k_code + 32 * i);
    EXPECT_EQ(found.data, 0x1234u);
    EXPECT_EQ(FdeAt(k_code + 32 * i + 20).pointer, nullptr) << "between two of them";
  }
  info.u.rti.table_len = 3;
  EXPECT_TRUE(cancel_procedure(&info));
}

/// An FDE that every reader understands is handed out in its place; an unusual one is written anew.
TEST(Fde, OfATableOfOneIsTheTablesOwn) {
  struct {
    const char* row;
    std::int64_t data_alignment;
    bool is_own;
  } const cases[]{{"cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]", 0, true},
                  {"cfa=rsp+20 rbx=[cfa-13] ra=[cfa-8]", -1, false},
                  {"cfa=rsp+24 rbx=cfa-16 ra=[cfa-8]", 0, false}};
  for (const auto& c : cases) {
    std::array<std::byte, 256> bytes{};
    EhFrameWriter writer(*host_arch(), bytes);
    CieParameters parameters;
    parameters.data_alignment = c.data_alignment;
    writer.begin_cie(parameters);
    const std::size_t place = writer.size();
    writer.begin_fde({k_code + 4, k_code + 20}, 0);
    ASSERT_TRUE(writer.row(0, entry_row(*host_arch())));
    ExpressionPool pool;
    ASSERT_TRUE(writer.row(4, parse_row(c.row, *host_arch(), pool).value().row));
    writer.end_fde();
    writer.terminate();
    const auto fde = reinterpret_cast<std::uintptr_t>(bytes.data() + place);
    const std::array<std::uint64_t, 2> wide{k_code + 4, fde};
    unw_dyn_info_t narrow_table = procedure_of_fde({k_code, k_code + 32}, fde), wide_table = narrow_table;
    wide_table.format = UNW_INFO_FORMAT_REMOTE_TABLE_64;
    wide_table.u.rti = {0, 0, sizeof wide / sizeof(unw_word_t), reinterpret_cast<std::uintptr_t>(&wide)};
    for (unw_dyn_info_t* const info : {&narrow_table, &wide_table}) {
      info->gp = 0x1234;
      ASSERT_TRUE(register_procedure(info));
      for (int again = 0; again < 2; ++again) {
        const FdeAt found(k_code + 12);
        EXPECT_EQ(found.pointer == bytes.data() + place, c.is_own) << c.row;
        EXPECT_EQ(found.function, k_code + 4);
        EXPECT_EQ(found.data, 0x1234u);
        EXPECT_EQ(found.row_at(k_code + 12), registered_row(k_code + 12));
        EXPECT_EQ(FdeAt(k_code + 2).pointer, nullptr) << "in front of it";
      }
      EXPECT_TRUE(cancel_procedure(info));
    }
  }
}

/// Code without rows is refused and reported. The rest of the same procedure works, up to the instruction where the
/// frame is lost.
TEST(Fde, OfBrokenDescriptionsIsRefused) {
  using namespace x86_64;
  // sp moves by an unknown amount without a frame pointer: no row from there on (E_SP_LOST).
  struct {
    unw_dyn_region_info_t head;
    unw_dyn_op_t more[1];
  } region{{nullptr, 16, 2, {_U_dyn_op(UNW_DYN_ADD, 0, 7, 7, UNW_DYN_ADD_UNKNOWN)}},
           {_U_dyn_op(UNW_DYN_STOP, 0, 0, 0, 0)}};
  unw_dyn_info_t info{};
  info.start_ip = k_code;
  info.end_ip = k_code + 16;
  info.u.pi.regions = &region.head;
  ASSERT_TRUE(register_procedure(&info));
  const SystemUnwinderStatus before = system_unwinder_status();
  EXPECT_EQ(FdeAt(k_code + 9).pointer, nullptr);
  const SystemUnwinderStatus after = system_unwinder_status();
  EXPECT_EQ(after.refused, before.refused + 1);
  EXPECT_EQ(after.latest_refusal.code, ErrorCode::e_sp_lost);
  EXPECT_EQ(after.latest_refusal.at, k_code + 9);
  const FdeAt good(k_code + 3);
  ASSERT_TRUE(good.fde);
  EXPECT_EQ(good.row_at(k_code + 3), registered_row(k_code + 3));
  EXPECT_EQ(good.row_at(k_code + 9), "cfa=rsp+8 ra=undefined");
  EXPECT_TRUE(cancel_procedure(&info));
}

/// Everything that is not registered is for the next definition.
TEST(Fde, OfStaticCodeIsTheNextDefinitions) {
  const auto here = reinterpret_cast<std::uintptr_t>(&registered_row) + 4;
  const FdeAt found(here);
  ASSERT_TRUE(found.fde);
  EXPECT_TRUE(found.fde->range.contains(here));
  EXPECT_EQ(found.function, found.fde->range.begin);
}

// Records of the registry, whatever they are used for.

TEST(DerivedRecords, HaveTheRoomAskedForOrAreNone) {
  const Crowd crowd(1);  // memory is mapped by registering
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{8}, std::size_t{9}, std::size_t{1000}, DerivedRecords::k_max_bytes}) {
    DerivedRecord* const record = allocate_derived(bytes);
    ASSERT_NE(record, nullptr) << bytes;
    EXPECT_GE(record->size(), bytes);
    std::memset(record->bytes(), 0x5a, record->size());
    give_back_derived(record);
    EXPECT_EQ(allocate_derived(bytes), record);
    give_back_derived(record);
  }
  EXPECT_EQ(allocate_derived(DerivedRecords::k_max_bytes + 1), nullptr);
}

TEST(DerivedRecords, AreTakenByOneAtATime) {
  const Crowd crowd(1);
  std::vector<std::thread> threads;
  std::atomic<int> mistakes{0};
  for (int t = 1; t <= 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        DerivedRecord* const a = allocate_derived(100);
        DerivedRecord* const b = allocate_derived(100);
        std::memset(a->bytes(), t, 100);
        std::memset(b->bytes(), t, 100);
        for (int k = 0; k < 100; ++k)
          mistakes += a->bytes()[k] != static_cast<std::byte>(t) || b->bytes()[k] != static_cast<std::byte>(t);
        give_back_derived(a);
        give_back_derived(b);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mistakes, 0);
}

}  // namespace
}  // namespace jitunwind::test
