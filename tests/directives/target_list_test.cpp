// The list of registered procedures, read from a target's memory: in its word size and byte order, and in any state.
#include "jitunwind/dyn_info/target_list.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/directives/random_description.h"
#include "tests/support/fake_space.h"
#include "tests/support/fake_target.h"
#include "tests/support/whole_procedure.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_listed = 0x40'0000;

/// A CPU of the tree with another word size or byte order.
Arch like(const Arch& arch, unsigned word_size, bool big_endian) {
  Arch other = arch;
  other.word_size = static_cast<std::uint8_t>(word_size);
  other.big_endian = big_endian;
  return other;
}

struct Head final : ListHead {
  Result<Addr> list_head(std::size_t number, MemoryWindow&) const noexcept override {
    return number == 0 ? at : Addr{0};
  }
  Result<Addr> at = Addr{0};
};

/// Lets a test change the target between two reads.
class WatchedMemory final : public Memory {
 public:
  explicit WatchedMemory(const Memory& target) : target_(target) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    ++reads;
    if (before_read) before_read(at);
    return target_.read(at, into, window);
  }
  mutable std::size_t reads = 0;
  std::function<void(Addr)> before_read;

 private:
  const Memory& target_;
};

struct Reader {
  explicit Reader(FakeTarget& t) : target(t) {}

  std::string row(Addr at) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    FrameRow row;
    const Found found = list.find_row(lookup, row);
    if (!found) return std::string("error ") + error_name(found.error().code);
    return *found ? to_text(row, target.arch) : "none";
  }
  std::string name(Addr at, Addr* start = nullptr) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    std::array<char, 64> into{};
    ProcedureName name;
    const Found found = list.find_name(lookup, into, name);
    if (!found) return std::string("error ") + error_name(found.error().code);
    if (start) *start = name.start;
    return *found ? into.data() : "none";
  }

  FakeTarget& target;
  WatchedMemory memory{target.memory};
  Head head;
  TargetList list{head};
  NoModules modules;
  std::array<const RowSource*, 1> rows{&list};
  std::array<const NameSource*, 1> names{&list};
  AddressSpace space{target.arch, memory, modules, rows, names};
};

unw_dyn_info_t procedure(Addr begin, Addr end) {
  unw_dyn_info_t info{};
  info.start_ip = begin;
  info.end_ip = end;
  return info;
}

struct Layout {
  const char* name;
  unsigned word_size;
  bool big_endian;
};

class TargetLists : public testing::TestWithParam<Layout> {
 protected:
  Arch arch(const Arch& of) const { return like(of, GetParam().word_size, GetParam().big_endian); }
};

/// The rows equal those of this process's own list: there is one evaluator, with two ways to the directives.
// covers: DY48
TEST_P(TargetLists, GiveTheRowsThatTheDirectivesMean) {
  std::mt19937_64 random(20261122);
  std::size_t rows = 0;
  for (int i = 0; i < 400; ++i) {
    const Arch cpu = arch(*all_arches()[static_cast<std::size_t>(i) % all_arches().size()]);
    const RandomDescription made = random_description(cpu, random, Extremes::none);
    const AddrRange range{k_listed, k_listed + made.size};
    const rows::CaseProcedure local(made.regions, range);
    FakeTarget target(cpu);
    Reader reader(target);
    reader.head.at =
        target.put_list(target.put_descriptor(local.info(), target.put_regions(local.info().u.pi.regions)));
    for (Addr at = range.begin; at < range.end; at += cpu.unit) {
      FrameRow row;
      const Status expected = directive_row(local.info(), cpu, CodeAddress::interrupted(at), nullptr, row);
      // The alias leads to code that neither knows.
      EXPECT_EQ(reader.row(at),
                expected ? to_text(row, cpu) : std::string("error ") + error_name(expected.error().code));
      rows += expected.has_value();
    }
  }
  EXPECT_GT(rows, 1000u);
}

// covers: DY48
TEST_P(TargetLists, GiveNamesHandlersAndData) {
  FakeTarget target(arch(arch::x86_64));
  Reader reader(target);
  unw_dyn_info_t info = procedure(k_listed, k_listed + 16);
  info.gp = 0x1234;
  info.u.pi.handler = 0x5678;
  info.u.pi.name_ptr = target.put_string("vm::call(int)");
  const std::vector<unw_dyn_op_t> ops{{UNW_DYN_STOP, 0, 0, 0, 0},
                                      {k_lsda_tag, 0, k_lsda_reg, k_lsda_when, 0x9abc},
                                      {k_landing_pad_base_tag, 0, k_lsda_reg, k_lsda_when, 0x11}};
  const rows::CaseProcedure regions({{0, ops, 0, -1}}, {k_listed, k_listed + 16});
  const Addr descriptor = target.put_descriptor(info, target.put_regions(regions.info().u.pi.regions));
  reader.head.at = target.put_list(descriptor);
  EXPECT_EQ(reader.name(k_listed + 3), "vm::call(int)");
  EXPECT_EQ(reader.name(k_listed + 16), "none");
  MemoryWindow window;
  Lookup lookup(reader.space, CodeAddress::interrupted(k_listed), window);
  ProcedureInfo found;
  ASSERT_TRUE(*reader.list.find_procedure(lookup, found));
  EXPECT_EQ(found.range, (AddrRange{k_listed, k_listed + 16}));
  EXPECT_EQ(found.handler, 0x5678u);
  EXPECT_EQ(found.lsda, 0x9abcu);
  EXPECT_EQ(found.gp, 0x1234u);
  EXPECT_EQ(found.unwind_info, descriptor);
}

/// Two procedures of one table, whose FDEs follow their pairs.
struct Table {
  explicit Table(FakeTarget& target) {
    ExpressionPool pool;
    const auto row = [&](const char* text) { return parse_row(text, target.arch, pool)->row; };
    const std::array first{OffsetRow{0, row("cfa=rsp+8 ra=[cfa-8]")}, OffsetRow{4, row("cfa=rsp+48 ra=[cfa-8]")}};
    const std::array second{OffsetRow{0, row("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]")}};
    const std::array codes{AddrRange{k_listed, k_listed + 32}, AddrRange{k_listed + 64, k_listed + 96}};
    entries[0] = put(target, {codes[0], first});
    entries[1] = put(target, {codes[1], second});
    starts = {codes[0].begin, codes[1].begin};
  }
  /// The FDE stands behind its CIE, whose length field has 4 bytes.
  static Addr put(FakeTarget& target, const ProcedureRows& rows) {
    const auto bytes = emit_eh_frame(rows, target.arch).value();
    const Addr at = target.allocate(bytes.size());
    target.memory.put_bytes(at, bytes);
    MemoryWindow window;
    return at + 4 + *read_unsigned(target.memory, window, at, 4, target.arch.big_endian, "");
  }
  Addr put_pairs(FakeTarget& target, unsigned size, Addr start_base, Addr fde_base) const {
    const Addr at = target.allocate(4 * size);
    for (std::size_t i = 0; i < 2; ++i) {
      target.memory.put(at + 2 * i * size, starts[i] - start_base, size);
      target.memory.put(at + (2 * i + 1) * size, entries[i] - fde_base, size);
    }
    return at;
  }
  std::array<Addr, 2> starts;
  std::array<Addr, 2> entries;
};

/// Pairs of 32 bits are not words: as words their halves would change places.
// covers: DY43 DY45 DY48
TEST_P(TargetLists, GiveTheRowsOfTables) {
  FakeTarget target(arch(arch::x86_64));
  const Table table(target);
  struct Case {
    int format;
    unsigned size;
    bool by_start;
  };
  for (const Case& c : {Case{UNW_INFO_FORMAT_TABLE, 4, false}, Case{UNW_INFO_FORMAT_REMOTE_TABLE, 4, false},
                        Case{UNW_INFO_FORMAT_REMOTE_TABLE_64, 8, false}, Case{UNW_INFO_FORMAT_IP_OFFSET, 4, true}}) {
    SCOPED_TRACE(c.format);
    unw_dyn_info_t info = procedure(k_listed, k_listed + 0x1000);
    info.format = c.format;
    info.u.rti.segbase = 0x8000;
    info.u.rti.table_len = 4 * c.size / target.arch.word_size;
    const Addr pairs =
        table.put_pairs(target, c.size, c.by_start ? info.start_ip : info.u.rti.segbase, info.u.rti.segbase);
    Reader reader(target);
    reader.head.at = target.put_list(target.put_descriptor(info, pairs));
    EXPECT_EQ(reader.row(k_listed + 3), "cfa=rsp+8 ra=[cfa-8]");
    EXPECT_EQ(reader.row(k_listed + 4), "cfa=rsp+48 ra=[cfa-8]");
    EXPECT_EQ(reader.row(k_listed + 64), "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]");
    EXPECT_EQ(reader.row(k_listed + 32), "none");
  }
}

// covers: DY58
TEST_P(TargetLists, NameTheProceduresOfATableAsOneGroup) {
  for (const bool named : {true, false}) {
    FakeTarget target(arch(arch::x86_64));
    const Table table(target);
    unw_dyn_info_t info = procedure(k_listed, k_listed + 0x1000);
    info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    info.u.rti.segbase = 0x8000;
    info.u.rti.table_len = 4 * sizeof(std::int32_t) / target.arch.word_size;
    if (named) info.u.rti.name_ptr = target.put_string("stubs");
    Reader reader(target);
    reader.head.at = target.put_list(target.put_descriptor(info, table.put_pairs(target, 4, 0x8000, 0x8000)));
    for (const Addr at : {k_listed + 3, k_listed + 64}) {
      Addr start = 0;
      EXPECT_EQ(reader.name(at, &start), named ? "stubs" : "none");
      EXPECT_EQ(start, named ? k_listed : 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, TargetLists,
                         testing::Values(Layout{"little64", 8, false}, Layout{"big64", 8, true},
                                         Layout{"little32", 4, false}, Layout{"big32", 4, true}),
                         [](const auto& layout) { return std::string(layout.param.name); });

constexpr const char* k_entry = "cfa=rsp+8 ra=[cfa-8]";

class OneTarget : public testing::Test {
 protected:
  /// A procedure without regions.
  Addr put(Addr begin, Addr end, Addr next = 0) { return target.put_descriptor(procedure(begin, end), 0, next); }

  FakeTarget target{arch::x86_64};
  Reader reader{target};
};

using TargetListState = OneTarget;

TEST_F(TargetListState, MayBeMissing) {
  EXPECT_EQ(reader.row(k_listed), "none");
  EXPECT_EQ(reader.memory.reads, 0u);
  reader.head.at = target.put_list(0);
  EXPECT_EQ(reader.row(k_listed), "none");
  reader.head.at = callback_error(-2, "head");
  EXPECT_EQ(reader.row(k_listed), "error callback_failed");
}

/// The list has the newest first.
TEST_F(TargetListState, TheNewestProcedureAnswers) {
  unw_dyn_info_t named = procedure(k_listed, k_listed + 16);
  named.u.pi.name_ptr = target.put_string("old");
  const Addr old = target.put_descriptor(named, 0);
  named.u.pi.name_ptr = target.put_string("new");
  named.start_ip += 8;
  reader.head.at = target.put_list(target.put_descriptor(named, 0, old));
  EXPECT_EQ(reader.name(k_listed + 7), "old");
  EXPECT_EQ(reader.name(k_listed + 8), "new");
}

// covers: DY48
TEST_F(TargetListState, VersionsThatAreKnownAreRead) {
  const Addr first = put(k_listed, k_listed + 16);
  for (const std::uint32_t version : {0u, 1u, 2u}) {
    reader.head.at = target.put_list(first, version);
    EXPECT_EQ(reader.row(k_listed), version == 2 ? "error unsupported_version" : k_entry) << version;
  }
}

/// A procedure is registered, and another one cancelled, just before its descriptor is read.
// covers: DY49
TEST_F(TargetListState, IsReadAgainWhereItChanges) {
  const Addr stays = put(k_listed, k_listed + 16);
  const Addr goes = put(k_listed + 32, k_listed + 48, stays);
  const Addr list = target.put_list(goes);
  reader.head.at = list;
  int changes = 0;
  reader.memory.before_read = [&](Addr at) {
    if (at != goes || changes != 0) return;
    ++changes;
    target.write_list(list, stays, 1, 4);
    target.memory.forget(goes, 80);
  };
  EXPECT_EQ(reader.row(k_listed), k_entry);
  EXPECT_EQ(changes, 1);
}

// covers: DY49
TEST_F(TargetListState, FailuresCountOnlyWhereNothingHasChanged) {
  const Addr list = target.put_list(0x666000);
  reader.head.at = list;
  EXPECT_EQ(reader.row(k_listed), "error unreadable_memory");
  std::uint32_t generation = 2;
  reader.memory.before_read = [&](Addr at) {
    if (at == 0x666000) target.write_list(list, 0x666000, 1, generation += 2);
  };
  EXPECT_EQ(reader.row(k_listed), "error unspecified");
  EXPECT_EQ(generation, 2u + 2 * 8);
}

/// The target was stopped while it was writing: the chain is whole at every moment.
// covers: DY49
TEST_F(TargetListState, OfATargetThatWasStoppedAtWorkIsUsed) {
  reader.head.at = target.put_list(put(k_listed, k_listed + 16), 1, 3);
  EXPECT_EQ(reader.row(k_listed), k_entry);
}

// covers: DY53
TEST_F(TargetListState, CyclesEnd) {
  for (const std::size_t length : {1u, 2u, 3u, 1000u}) {
    std::vector<Addr> all{put(k_listed, k_listed + 16)};
    for (std::size_t i = 1; i < length; ++i) all.push_back(put(k_listed, k_listed + 16, all.back()));
    target.memory.put(all.front(), all.back());
    reader.head.at = target.put_list(all.back());
    EXPECT_EQ(reader.row(k_listed + 64), "error e_cycle") << length;
    EXPECT_EQ(reader.row(k_listed), k_entry);
  }
}

// covers: DY53
TEST_F(TargetListState, HugeAndCyclicRegionsEnd) {
  const Addr region = target.allocate(32);
  target.memory.put(region, region);
  target.memory.put(region + 8, 1, 4);
  target.memory.put(region + 12, 0, 4);
  reader.head.at = target.put_list(target.put_descriptor(procedure(k_listed, k_listed + 0x10'0000), region));
  EXPECT_EQ(reader.row(k_listed + 0x8'0000), "error e_cycle");
  target.memory.put(region, 0);
  target.memory.put(region + 12, 0xffff'ffff, 4);
  EXPECT_EQ(reader.row(k_listed).substr(0, 5), "error");
  EXPECT_LT(reader.memory.reads, 100'000u);
}

TEST_F(TargetListState, NothingOfItNeedsToBeReadable) {
  unw_dyn_info_t info = procedure(k_listed, k_listed + 16);
  info.u.pi.name_ptr = 0x666000;
  reader.head.at = target.put_list(target.put_descriptor(info, 0x666000));
  EXPECT_EQ(reader.row(k_listed), "error unreadable_memory");
  EXPECT_EQ(reader.name(k_listed), "error unreadable_memory");
  info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  info.u.rti.table_len = 8;
  reader.head.at = target.put_list(target.put_descriptor(info, 0x666000));
  EXPECT_EQ(reader.row(k_listed), "error unreadable_memory");
  info.format = 77;
  reader.head.at = target.put_list(target.put_descriptor(info, 0));
  EXPECT_EQ(reader.row(k_listed), "error e_format");
  reader.head.at = 0x666000;
  EXPECT_EQ(reader.row(k_listed), "error unreadable_memory");
}

}  // namespace
}  // namespace jitunwind::test
