// Objects of a target with false headers: they claim to be longer than what is mapped, or to lie where others are. A
// walk does not depend on earlier walks.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_begin = 0x400000, k_stack = 0x7000'0000;
constexpr std::uint64_t k_too_long = std::uint64_t{1} << 40;

BuiltSegment loaded(std::uint32_t flags, Addr offset, std::uint64_t size) {
  return {.type = PT_LOAD, .flags = flags, .offset = offset, .address = offset, .file_size = size, .memory_size = size};
}

/// Makes the first page of an object at `begin` with procedures at `code`; their frames consist of a return address.
RawBytes object(Addr begin, std::vector<BuiltSegment> segments, std::initializer_list<AddrRange> code = {}) {
  ElfBuilder elf(true, false);
  elf.segments = std::move(segments);
  return object_with_frames(std::move(elf), begin, [&](CfiSection& frames) {
    const Addr cie = frames.cie({});
    for (const AddrRange& range : code) frames.fde(cie, range.begin, range.size(), {});
  });
}

struct HostileTarget {
  HostileTarget(const char* maps, std::vector<std::pair<Addr, RawBytes>> objects, std::vector<std::uint64_t> stack)
      : contents(std::move(objects)),
        words(std::move(stack)),
        bytes(pieces()),
        space(k_arch, bytes, Mappings::parse(maps), TargetFiles::none()) {}

  std::vector<BytesMemory::Piece> pieces() const {
    std::vector<BytesMemory::Piece> all{{k_stack, std::as_bytes(std::span(words))}};
    for (const auto& [at, piece] : contents) all.push_back({at, piece});
    return all;
  }
  /// Returns the return addresses, and the reason why there are no more.
  std::vector<std::string> walk(Addr pc, const AddressSpace& by) const {
    RegisterFile registers;
    registers.set(k_arch.column(k_arch.pc), pc);
    registers.set(k_arch.column(k_arch.sp), k_stack);
    Walk walk(Cursor(by, registers, Cursor::Top::interrupted));
    std::vector<std::string> seen;
    for (const Frame& frame : walk) {
      std::array<char, 20> text;
      std::snprintf(text.data(), text.size(), "%#lx", static_cast<unsigned long>(frame.pc()));
      seen.emplace_back(text.data());
    }
    seen.push_back(walk.why());
    return seen;
  }
  std::vector<std::string> walk_without_kept_rows(Addr pc) const {
    AddressSpace plain = space.space();
    plain.row_cache = nullptr;
    return walk(pc, plain);
  }
  void expect_the_same_again_and_again(Addr pc, std::size_t frames) {
    const auto expected = walk_without_kept_rows(pc);
    EXPECT_EQ(expected.size(), frames + 1) << testing::PrintToString(expected);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(walk(pc, space.space()), expected) << i;
      space.renew(space.mappings());
    }
  }

  static constexpr const Arch& k_arch = arch::x86_64;
  std::vector<std::pair<Addr, RawBytes>> contents;
  std::vector<std::uint64_t> words;
  BytesMemory bytes;
  TargetSpace space;
};

/// Checks that the range known around `caller` agrees with the answer for each of its addresses alone.
AddrRange expect_known_code_to_be_code(const AddressSpace& space, Addr caller) {
  MemoryWindow window;
  AddrRange known;
  const Status code = space.expect_code(CodeAddress::returned_to(caller), window, known);
  EXPECT_TRUE(code) << code.error().what;
  const std::uint64_t step = std::max<std::uint64_t>(known.size() / 4096, 256);
  std::vector<Addr> asked;
  for (Addr at = known.begin; at < known.end; at += step) asked.push_back(at);
  if (!known.empty()) asked.push_back(known.end - 1);
  const auto is_code = [&](Addr at) {
    AddrRange ignored;
    return bool(space.expect_code(CodeAddress::returned_to(at + 1), window, ignored));
  };
  const auto wrong = std::ranges::find_if_not(asked, is_code);
  EXPECT_TRUE(wrong == asked.end()) << std::hex << *wrong << " of " << known.begin << "-" << known.end;
  return known;
}

constexpr const char* k_one_object = "400000-401000 r-xp 0 08:01 12 /a\n70000000-70001000 rw-p 0 00:00 0 [stack]\n";

bool has_module(const RawBytes& object) {
  const HostileTarget target(k_one_object, {{k_begin, object}}, {});
  Module module;
  return target.space.modules().find(0x400801, module);
}

/// An emulator maps files of the CPU that it emulates. Their code is not run by this CPU, so they are no modules.
TEST(ModuleOfAnotherCpu, IsNone) {
  const RawBytes own = object(k_begin, {loaded(PF_R | PF_X, 0, 0x1000)});
  EXPECT_TRUE(has_module(own));
  for (const auto& [field, value] : {std::pair{std::size_t{EI_CLASS}, ELFCLASS32},
                                     {EI_DATA, ELFDATA2MSB},
                                     {offsetof(Elf64_Ehdr, e_machine), EM_AARCH64}}) {
    RawBytes others = own;
    others.at(field) = static_cast<std::byte>(value);
    EXPECT_FALSE(has_module(others)) << field;
  }
}

/// An object lies where its lowest segment does, which has its headers.
TEST(ModuleWhoseHeadersLieElsewhere, IsNone) {
  BuiltSegment headers = loaded(PF_R | PF_X, 0, 0x1000), below = loaded(PF_R, 0x1000, 0x1000);
  EXPECT_TRUE(has_module(object(k_begin, {headers, below})));
  headers.address = 0x10000;
  below.address = 0;
  EXPECT_FALSE(has_module(object(k_begin, {headers, below})));
}

TEST(ModuleThatSaysTooMuch, EndsWhereItsMappingDoes) {
  BuiltSegment code = loaded(PF_R | PF_X, 0, 0x1000);
  code.memory_size = k_too_long;
  HostileTarget target(k_one_object, {{k_begin, object(k_begin, {code}, {{0x400800, 0x400900}})}},
                       {0x400811, 0x400821, 0x500000});
  const AddrRange known = expect_known_code_to_be_code(target.space.space(), 0x400811);
  EXPECT_EQ(known, (AddrRange{k_begin, 0x401000}));
  target.expect_the_same_again_and_again(0x400801, 3);
}

TEST(ModuleThatSaysTooMuch, HasNothingOfAnotherOne) {
  BuiltSegment code = loaded(PF_R | PF_X, 0, 0x1000);
  code.memory_size = k_too_long;
  HostileTarget target(
      "400000-401000 r-xp 0 08:01 12 /a\n401000-402000 r--p 0 08:01 13 /b\n"
      "70000000-70001000 rw-p 0 00:00 0 [stack]\n",
      {{k_begin, object(k_begin, {code}, {{0x400800, 0x400900}})},
       {0x401000, object(0x401000, {loaded(PF_R, 0, 0x1000)})}},
      {0x400811, 0x400821, 0x401801});
  expect_known_code_to_be_code(target.space.space(), 0x400811);
  target.expect_the_same_again_and_again(0x400801, 3);
  ModuleVersion first, second;
  ASSERT_TRUE(target.space.modules().find_version(0x400800, first));
  ASSERT_TRUE(target.space.modules().find_version(0x401800, second));
  EXPECT_FALSE(first.range.contains(0x401800));
  EXPECT_NE(first.version, second.version);
}

TEST(ModuleThatSaysTooMuch, HasNothingOfAFileThatIsNoObject) {
  BuiltSegment code = loaded(PF_R | PF_X, 0, 0x1000);
  code.memory_size = k_too_long;
  const HostileTarget target("400000-401000 r-xp 0 08:01 12 /a\n401000-402000 r-xp 0 08:01 13 /b\n",
                             {{k_begin, object(k_begin, {code})}}, {});
  Module module;
  EXPECT_TRUE(target.space.modules().find(0x400801, module));
  EXPECT_FALSE(target.space.modules().find(0x401801, module));
}

/// A file that is mapped twice from its first page on. The nearer object is shorter than its mapping, and the rest of
/// the mapping is not the part of the file that the other object would have there.
TEST(ModuleThatSaysTooMuch, HasNothingOfANearerOneInTheSameMapping) {
  BuiltSegment code = loaded(PF_R | PF_X, 0, 0x1000);
  code.memory_size = k_too_long;
  const HostileTarget target(
      "400000-401000 r-xp 0 08:01 12 /a\n402000-404000 r--p 0 08:01 12 /a\n404000-405000 r-xp 0 00:00 0 \n",
      {{k_begin, object(k_begin, {code})}, {0x402000, object(0x402000, {loaded(PF_R, 0, 0x1000)})}}, {});
  Module module;
  EXPECT_TRUE(target.space.modules().find(0x402801, module));
  EXPECT_EQ(module.range.begin, 0x402000u);
  EXPECT_FALSE(target.space.modules().find(0x403801, module));
  EXPECT_EQ(expect_known_code_to_be_code(target.space.space(), 0x404801), (AddrRange{0x404000, 0x405000}));
}

/// The interrupted frame is where its registers say. Its row does not make the place code.
TEST(RowOfWhatIsNoCode, DoesNotMakeItCode) {
  HostileTarget target(
      "400000-401000 r-xp 0 08:01 12 /a\n401000-402000 r--p 1000 08:01 12 /a\n"
      "70000000-70001000 rw-p 0 00:00 0 [stack]\n",
      {{k_begin, object(k_begin, {loaded(PF_R | PF_X, 0, 0x1000), loaded(PF_R, 0x1000, 0x1000)},
                        {{0x400800, 0x400900}, {0x401000, 0x401100}})}},
      {0x400811, 0x401011, 0x400811});
  target.expect_the_same_again_and_again(0x401010, 2);
}

constexpr const char* k_two_segments =
    "400000-401000 r-xp 0 08:01 12 /a\n402000-403000 r--p 2000 08:01 12 /a\n"
    "70000000-70001000 rw-p 0 00:00 0 [stack]\n";

/// A pair of a table: where code begins, and its FDE.
using Pair = std::pair<Addr, Addr>;

/// Makes an object whose table has pairs of `others`, for code in front of 0x400900, and one that leads to an FDE of
/// its .eh_frame, for the code there. Table and FDE follow `before`.
RawBytes object_with_table(const RawBytes& before, std::vector<Pair> others, std::uint64_t second_size = 0x1000) {
  const std::size_t table_size = 12 + 8 * (others.size() + 1);
  ElfBuilder elf(true, false);
  elf.segments = {loaded(PF_R | PF_X, 0, 0x1000), loaded(PF_R, 0x2000, second_size), {.type = PT_GNU_EH_FRAME}};
  elf.sections = {
      {".before", SHT_PROGBITS, before}, {".eh_frame_hdr", SHT_PROGBITS, RawBytes(table_size)}, {".eh_frame"}};
  BuiltSegment& header = elf.segments.back();
  header.offset = header.address = elf.offset_of(1);
  header.file_size = header.memory_size = table_size;
  const Addr hdr = k_begin + elf.offset_of(1);
  CfiSection frames(k_begin + elf.offset_of(2));
  const Addr fde = frames.fde(frames.cie({}), 0x400900, 0x100, {});
  frames.terminator();
  // The table has .eh_frame by 4 bytes relative to their place, the number of pairs, and pairs relative to the header,
  // all of 4 bytes.
  Bytes table({1, 0x1b, 0x03, 0x3b});
  others.emplace_back(0x400900, fde);
  table.u32(elf.offset_of(2) - (elf.offset_of(1) + 4)).u32(others.size());
  for (const auto& [start, fde_of_it] : others) table.u32(start - hdr).u32(fde_of_it - hdr);
  elf.sections[1].data = table.vector();
  elf.sections[2].data = frames.data().vector();
  return elf.build();
}

/// The place of what is `before` the table.
Addr place_before_the_table() {
  ElfBuilder elf(true, false);
  elf.segments.resize(3);
  elf.sections = {{".before"}};
  return k_begin + elf.offset_of(0);
}

/// Tools that merge objects leave each one's .eh_frame where it was, and make one table: in front of the one that the
/// header names, or in another segment.
TEST(TableOfATarget, LeadsToEntriesWhereverTheyAre) {
  const auto others_at = [](Addr at, Addr& fde) {
    CfiSection frames(at);
    fde = frames.fde(frames.cie({}), 0x400800, 0x100, {});
    return frames.data().vector();
  };
  Addr fde = 0;
  const RawBytes before = others_at(place_before_the_table(), fde);
  HostileTarget same(k_two_segments, {{k_begin, object_with_table(before, {{0x400800, fde}})}},
                     {0x400911, 0x400821, 0x500000});
  same.expect_the_same_again_and_again(0x400801, 3);
  const RawBytes elsewhere = others_at(0x402000, fde);
  HostileTarget another(k_two_segments, {{k_begin, object_with_table({}, {{0x400800, fde}})}, {0x402000, elsewhere}},
                        {0x400911, 0x400821, 0x500000});
  another.expect_the_same_again_and_again(0x400801, 3);
}

/// Linkers leave an empty FDE behind the one of the same start, and an FDE may lie in the range of another one. The one
/// that covers is on another page than the others here. The sizes of frames tell which FDE was taken.
TEST(TableOfATarget, LeadsToTheFdeThatCovers) {
  const char* const maps =
      "400000-401000 r-xp 0 08:01 12 /a\n402000-405000 r--p 2000 08:01 12 /a\n"
      "70000000-70001000 rw-p 0 00:00 0 [stack]\n";
  CfiSection frames(0x402000);
  const Addr outer = frames.fde(frames.cie({}), 0x400800, 0x100, {});
  frames.data().fill(0x2000, 0);
  const Addr cie = frames.cie({}), empty = frames.fde(cie, 0x400800, 0, {});
  const Addr behind = frames.fde(cie, 0x400820, 0, {}), inner = frames.fde(cie, 0x400810, 8, {0x0e, 24});
  for (const bool empty_is_last : {true, false}) {
    const Addr first = empty_is_last ? outer : empty, second = empty_is_last ? empty : outer;
    const RawBytes object =
        object_with_table({}, {{0x400800, first}, {0x400800, second}, {0x400810, inner}, {0x400820, behind}}, 0x3000);
    HostileTarget target(maps, {{k_begin, object}, {0x402000, frames.data().vector()}},
                         {0x400821, 0x400813, 0, 0, 0x400819, 0x500000});
    target.expect_the_same_again_and_again(0x400801, 4);
  }
}

/// No linker puts a CIE into another segment than its FDE. Tools that move sections may.
TEST(TableOfATarget, LeadsToFdesWithACieInAnotherSegment) {
  const Addr first = place_before_the_table(), second = 0x402000;
  for (const auto& [of_cie, of_fde] : {std::pair(first, second), std::pair(second, first)}) {
    CfiSection cies(of_cie), frames(of_fde);
    const Addr cie = cies.cie({}), fde = frames.fde(cie, 0x400800, 0x100, {});
    const RawBytes in_cies = cies.data().vector(), in_frames = frames.data().vector();
    HostileTarget target(k_two_segments,
                         {{k_begin, object_with_table(of_cie == first ? in_cies : in_frames, {{0x400800, fde}})},
                          {second, of_cie == first ? in_frames : in_cies}},
                         {0x400911, 0x400821, 0x500000});
    target.expect_the_same_again_and_again(0x400801, 3);
  }
}

/// Three pages of .eh_frame with a CIE of 16 bytes at the end of the first and an FDE on the third; the other bytes are
/// 0xaa.
struct EntriesFarApart {
  static constexpr Addr k_at = 0x500000, k_fde = k_at + 0x2100;
  static constexpr std::size_t k_cie = 0xff0;
  explicit EntriesFarApart(std::size_t readable) : all(0x3000, std::byte{0xaa}) {
    put(k_cie, {12, 0});
    put(k_fde - k_at, {12, static_cast<std::uint32_t>(k_fde + 4 - k_at - k_cie)});
    memory.emplace(std::vector<BytesMemory::Piece>{{k_at, std::span(all).first(readable)}});
  }
  void put(std::size_t at, std::initializer_list<std::uint32_t> numbers) {
    std::memcpy(all.data() + at, numbers.begin(), numbers.size() * sizeof(std::uint32_t));
  }
  /// Returns whether these bytes of the section were copied.
  bool has(std::size_t at, std::size_t size) const {
    return std::ranges::equal(entries.section().bytes.subspan(at, size), std::span(all).subspan(at, size));
  }

  RawBytes all;
  std::optional<BytesMemory> memory;
  CopiedEntries entries;
};

/// A CIE is compared with known ones by more bytes than it may have.
TEST(CopiedEntriesOfAModule, HaveWhatFollowsAShortCie) {
  EntriesFarApart frames(0x3000);
  ASSERT_TRUE(frames.entries.make(*frames.memory, {frames.k_at, frames.k_at + 0x3000}));
  ASSERT_TRUE(frames.entries.copy_fde(frames.k_fde, false));
  EXPECT_TRUE(frames.has(frames.k_cie, 32));
  EXPECT_TRUE(frames.has(frames.k_fde - frames.k_at, 16));
}

/// The readable part of the last page is as long as the entry needs, or one byte shorter.
TEST(CopiedEntriesOfAModule, NeedNoMoreOfAPageThanTheyHave) {
  for (const std::size_t readable : {0x2110u, 0x210fu}) {
    EntriesFarApart frames(readable);
    ASSERT_TRUE(frames.entries.make(*frames.memory, {frames.k_at, frames.k_at + 0x3000}));
    EXPECT_EQ(frames.entries.copy_fde(frames.k_fde, false).has_value(), readable == 0x2110);
    EXPECT_EQ(frames.has(frames.k_fde - frames.k_at, 16), readable == 0x2110);
  }
}

/// Every address of a module of this process finds that module.
TEST(ModuleOfThisProcess, HasTextThatIsCode) {
  for (const void* const code :
       {reinterpret_cast<const void*>(&std::snprintf), reinterpret_cast<const void*>(&expect_known_code_to_be_code)}) {
    const auto at = reinterpret_cast<std::uintptr_t>(code);
    EXPECT_TRUE(expect_known_code_to_be_code(local_space(), at + 1).contains(at));
  }
}

}  // namespace
}  // namespace jitunwind::test
