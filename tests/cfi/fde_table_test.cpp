// .eh_frame_hdr and other tables of (start, FDE) pairs, in every encoding, and corrupt ones.
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

#include <gtest/gtest.h>

#include "tests/cfi/rows_of.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_hdr = 0x40000;

struct Pair {
  Addr start;
  Addr fde;
};
const std::vector<Pair> k_pairs{{0x1000, 0x41000}, {0x1100, 0x41100}, {0x1100, 0x41180}, {0x3000, 0x41200}};

/// Makes a table with members of `width` bytes: value - start_base and value - fde_base.
Bytes pairs(const std::vector<Pair>& list, unsigned width, Addr start_base, Addr fde_base, bool big_endian = false) {
  Bytes bytes = Bytes::in_order(big_endian);
  for (const Pair& p : list) bytes.number(p.start - start_base, width).number(p.fde - fde_base, width);
  return bytes;
}

/// Returns "start->fde" of the pair that is found.
std::string found_at(const FdeTable& table, Addr pc, const Bytes& bytes, bool big_endian = false) {
  FoundFde found;
  if (!search(table, pc, big_endian, bytes.vector(), found)) return "none";
  FakeMemory memory;
  memory.put_bytes(table.address, bytes.vector());
  MemoryWindow window;
  FoundFde again;
  const auto also = search(table, pc, big_endian, memory, window, again);
  EXPECT_TRUE(also && *also && again.start == found.start && again.fde == found.fde && again.index == found.index);
  FoundFde before = found, before_in_memory = found;
  while (step_back(table, big_endian, bytes.vector(), before)) {
    const auto moved = step_back(table, big_endian, memory, window, before_in_memory);
    EXPECT_TRUE(moved && *moved && before.fde == before_in_memory.fde && before.index == before_in_memory.index);
    EXPECT_EQ(before.start, k_pairs.size() == table.count ? k_pairs[before.index].start : before_in_memory.start);
  }
  EXPECT_EQ(before.index, 0u);
  char text[64];
  std::snprintf(text, sizeof text, "%llx->%llx", static_cast<unsigned long long>(found.start),
                static_cast<unsigned long long>(found.fde));
  return text;
}

void expect_all_found(const FdeTable& table, const Bytes& bytes, bool big_endian = false) {
  EXPECT_EQ(found_at(table, 0, bytes, big_endian), "none");
  EXPECT_EQ(found_at(table, 0xfff, bytes, big_endian), "none");
  EXPECT_EQ(found_at(table, 0x1000, bytes, big_endian), "1000->41000");
  EXPECT_EQ(found_at(table, 0x10ff, bytes, big_endian), "1000->41000");
  EXPECT_EQ(found_at(table, 0x1100, bytes, big_endian), "1100->41180") << "the last of equal ones";
  EXPECT_EQ(found_at(table, 0x2fff, bytes, big_endian), "1100->41180");
  EXPECT_EQ(found_at(table, 0x3000, bytes, big_endian), "3000->41200");
  EXPECT_EQ(found_at(table, ~Addr{0}, bytes, big_endian), "3000->41200");
}

struct Encoding {
  const char* what;
  unsigned encoding;
  unsigned width;
  Addr base;
};
const Encoding k_encodings[] = {
    {"absptr", 0x00, 8, 0},
    {"signed", 0x08, 8, 0},
    {"udata4", 0x03, 4, 0},
    {"sdata4", 0x0b, 4, 0},
    {"udata8", 0x04, 8, 0},
    {"sdata8", 0x0c, 8, 0},
    {"datarel sdata4", 0x3b, 4, k_hdr},
    {"datarel sdata8", 0x3c, 8, k_hdr},
    {"datarel absptr", 0x30, 8, k_hdr},
};

TEST(FdeTable, EveryEncodingOfEhFrameHdr) {
  for (const bool big_endian : {false, true}) {
    Arch arch = arch::x86_64;
    arch.big_endian = big_endian;
    for (const Encoding& e : k_encodings) {
      const Bytes table_bytes = pairs(k_pairs, e.width, e.base, e.base, big_endian);
      Bytes hdr = Bytes::in_order(big_endian);
      hdr.u8(1).u8(0x1b).u8(0x03).u8(e.encoding).u32(0x41000 - (k_hdr + 4)).u32(k_pairs.size()).add(table_bytes);
      const auto parsed = parse_eh_frame_hdr({hdr.vector(), k_hdr}, arch);
      ASSERT_TRUE(parsed) << e.what << parsed.error().what;
      EXPECT_EQ(parsed->eh_frame, 0x41000u) << e.what;
      EXPECT_EQ(parsed->table.count, k_pairs.size()) << e.what;
      EXPECT_EQ(parsed->table.address, k_hdr + 12) << e.what;
      SCOPED_TRACE(e.what);
      expect_all_found(parsed->table, table_bytes, big_endian);
    }
  }
}

TEST(FdeTable, AnyNumberOfPairs) {
  for (Addr count = 0; count <= 200; ++count) {
    std::vector<Pair> list;
    for (Addr i = 0; i < count; ++i) list.push_back({0x1000 + 16 * i, 0x41000 + i});
    const Bytes bytes = pairs(list, 4, k_hdr, k_hdr);
    const FdeTable table{.address = k_hdr, .count = count, .start_base = k_hdr, .fde_base = k_hdr};
    Bytes hdr{1, 0x1b, 0x03, 0x3b};
    hdr.u32(0x41000 - (k_hdr + 4)).u32(count).add(bytes);
    const SectionBytes section{hdr.vector(), k_hdr};
    FoundFde found;
    EXPECT_FALSE(search(table, 0xfff, false, bytes.vector(), found));
    EXPECT_EQ(search_eh_frame_hdr(section, 0xfff, arch::x86_64), 0u);
    EXPECT_EQ(search_eh_frame_hdr(section, Addr{1} << 47, arch::x86_64), count == 0 ? 0 : list.back().fde);
    for (Addr i = 0; i < count; ++i) {
      for (const Addr pc : {list[i].start, list[i].start + 15}) {
        ASSERT_TRUE(search(table, pc, false, bytes.vector(), found)) << i << " of " << count;
        EXPECT_EQ(found.start, list[i].start) << i << " of " << count;
        EXPECT_EQ(found.fde, list[i].fde) << i << " of " << count;
        EXPECT_EQ(found.index, i) << i << " of " << count;
        EXPECT_EQ(search_eh_frame_hdr(section, pc, arch::x86_64), list[i].fde) << i << " of " << count;
      }
    }
  }
}

TEST(FdeTable, MembersOfTwoBytesAndRelativeToThemselves) {
  const std::vector<Pair> near{{k_hdr - 0x200, k_hdr + 0x100}, {k_hdr - 0x100, k_hdr + 0x180}};
  for (const unsigned encoding : {0x3au, 0x1au, 0x1bu, 0x1cu}) {
    const unsigned width = (encoding & 0xf) == 0xa ? 2 : (encoding & 0xf) == 0xb ? 4 : 8;
    Bytes hdr;
    hdr.u8(1).u8(0xff).u8(0x02).u8(encoding).u16(near.size());
    const std::size_t table_at = hdr.size();
    for (const Pair& p : near)
      for (const Addr value : {p.start, p.fde})
        hdr.number(value - (encoding >= 0x30 ? k_hdr : k_hdr + hdr.size()), width);
    const auto parsed = parse_eh_frame_hdr({hdr.vector(), k_hdr}, arch::x86_64);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->eh_frame, 0u) << "omitted";
    Bytes table_bytes;
    for (std::size_t i = table_at; i < hdr.size(); ++i) table_bytes.u8(std::to_integer<unsigned>(hdr.vector()[i]));
    EXPECT_EQ(found_at(parsed->table, k_hdr - 0x201, table_bytes), "none") << encoding;
    EXPECT_EQ(found_at(parsed->table, k_hdr - 0x101, table_bytes), "3fe00->40100") << encoding;
    EXPECT_EQ(found_at(parsed->table, k_hdr - 0x100, table_bytes), "3ff00->40180") << encoding;
  }
}

TEST(FdeTable, HeadersWithoutTable) {
  const auto count_of = [](const Bytes& hdr) {
    const auto parsed = parse_eh_frame_hdr({hdr.vector(), k_hdr}, arch::x86_64);
    EXPECT_TRUE(parsed);
    EXPECT_EQ(parsed->eh_frame, 0x40014u);
    return parsed->table.count;
  };
  EXPECT_EQ(count_of({1, 0x1b, 0xff, 0xff, 16, 0, 0, 0}), 0u) << "both omitted";
  EXPECT_EQ(count_of({1, 0x1b, 0x03, 0xff, 16, 0, 0, 0, 1, 0, 0, 0}), 0u) << "table omitted";
  EXPECT_EQ(count_of({1, 0x1b, 0xff, 0x3b, 16, 0, 0, 0}), 0u) << "count omitted";
  EXPECT_EQ(count_of({1, 0x1b, 0x03, 0x3b, 16, 0, 0, 0, 0, 0, 0, 0}), 0u) << "count 0";
  // Pairs of no fixed size, or of a base that is not known, cannot be searched.
  for (const unsigned encoding : {0x01u, 0x09u, 0x31u, 0x2bu, 0x4bu, 0x50u, 0xbbu, 0x05u, 0x6bu})
    EXPECT_EQ(count_of({1, 0x1b, 0x03, encoding, 16, 0, 0, 0, 1, 0, 0, 0}), 0u) << encoding;
}

TEST(FdeTable, LyingHeaders) {
  const auto error_of = [](const Bytes& hdr) {
    const auto parsed = parse_eh_frame_hdr({hdr.vector(), k_hdr}, arch::x86_64);
    return parsed ? std::string("none") : error_line(parsed.error());
  };
  const Bytes good = Bytes{1, 0x1b, 0x03, 0x3b, 16, 0, 0, 0, 2, 0, 0, 0}.fill(16, 0);
  EXPECT_EQ(error_of(good), "none");
  EXPECT_EQ(error_of(Bytes(good).put(0, 2, 1)), "error unsupported_version: version of .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes(good).put(1, 0x0f, 1)), "error bad_encoding: .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes(good).put(1, 0x9b, 1)), "error bad_encoding: indirect field of .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes(good).put(2, 0x2b, 1)), "error bad_encoding: .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes(good).put(8, 3, 4)), "error truncated: table of .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes(good).put(8, 0xffffffff, 4)), "error truncated: table of .eh_frame_hdr");
  EXPECT_EQ(error_of(Bytes{1, 0x1b, 0x04, 0x3c, 16, 0, 0, 0}.u64(~Addr{0}).fill(16, 0)),
            "error truncated: table of .eh_frame_hdr")
      << "a count whose size overflows";
  for (std::size_t size = 0; size < 12; ++size) {
    Bytes prefix = good;
    prefix.vector().resize(size);
    EXPECT_EQ(error_of(prefix), "error truncated: .eh_frame_hdr") << size;
  }
}

/// Formats of registered procedures: REMOTE_TABLE (and TABLE), REMOTE_TABLE_64, IP_OFFSET.
TEST(FdeTable, FormatsOfRegisteredProcedures) {
  constexpr Addr segbase = 0x41800, start_ip = 0x1000, at = 0x50000;
  expect_all_found({.address = at, .count = 4, .start_base = segbase, .fde_base = segbase},
                   pairs(k_pairs, 4, segbase, segbase));
  expect_all_found({.address = at, .count = 4, .width = 8, .start_base = segbase, .fde_base = segbase},
                   pairs(k_pairs, 8, segbase, segbase));
  expect_all_found({.address = at, .count = 4, .start_base = start_ip, .fde_base = segbase},
                   pairs(k_pairs, 4, start_ip, segbase));
}

TEST(FdeTable, UnreadableAndShortTables) {
  const Bytes bytes = pairs(k_pairs, 4, 0, 0);
  FdeTable table{.address = 0x50000, .count = 5};
  FakeMemory memory;
  memory.put_bytes(table.address, bytes.vector());
  MemoryWindow window;
  FoundFde found;
  const auto unreadable = search(table, 0x4000, false, memory, window, found);
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code, ErrorCode::unreadable_memory);
  EXPECT_EQ(unreadable.error().at, 0x50020u);
  EXPECT_FALSE(search(table, 0x4000, false, bytes.vector(), found));
  table.count = std::uint64_t{1} << 62;
  EXPECT_FALSE(search(table, 0x4000, false, bytes.vector(), found));
}

/// The path from a table in memory to a row, as for the code of a JIT.
TEST(FdeTable, RowThroughATableInMemory) {
  CfiSection section(0x41000);
  const Addr cie = section.cie({});
  const Addr one = section.fde(cie, 0x1000, 16, {0x41, 0x0e, 16});
  const Addr two = section.fde(cie, 0x1010, 16, {0x42, 0x0e, 32});
  FakeMemory memory;
  memory.put_bytes(0x41000, section.data().vector());
  const Bytes bytes = pairs({{0x1000, one}, {0x1010, two}}, 4, 0x41000, 0x41000);
  memory.put_bytes(0x50000, bytes.vector());
  const FdeTable table{.address = 0x50000, .count = 2, .start_base = 0x41000, .fde_base = 0x41000};
  const CfiContext context{.arch = arch::x86_64};
  for (const auto& [pc, expected] : {std::pair{0x1001u, "cfa=rsp+16 ra=[cfa-8]"}, {0x101fu, "cfa=rsp+32 ra=[cfa-8]"}}) {
    MemoryWindow window;
    std::array<std::byte, 4096> buffer;
    MemoryView view(memory, window, buffer);
    FoundFde found;
    ASSERT_TRUE(search(table, pc, false, memory, window, found).value());
    const auto fde = read_fde(view, context, found.fde);
    ASSERT_TRUE(fde);
    FrameRow row;
    ASSERT_TRUE(row_at(*fde, context, pc, row));
    EXPECT_EQ(to_text(row, arch::x86_64), expected);
  }
}

}  // namespace
}  // namespace jitunwind::test
