// ELF images of both classes and byte orders: whole, cut and corrupt.
#include <gtest/gtest.h>

#include <random>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "tests/support/elf_builder.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {
namespace {

struct Kind {
  bool is_64;
  bool big_endian;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << (kind.is_64 ? 64 : 32) << (kind.big_endian ? "BigEndian" : "LittleEndian");
}

class ElfImages : public testing::TestWithParam<Kind> {
 protected:
  ElfBuilder builder() const { return {GetParam().is_64, GetParam().big_endian}; }
  Bytes bytes() const { return builder().bytes(); }
  std::size_t symbol_size() const { return GetParam().is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym); }

  /// Code, symbols, a build id; loaded at 0x10000 with file offset = address - 0x10000 up to the end of the notes.
  ElfBuilder usual() const {
    ElfBuilder b = builder();
    const RawBytes symbols = b.symbols({{1, 0x10100, 16, STT_FUNC, STB_GLOBAL, 1},
                                        {5, 0x10110, 0, STT_NOTYPE, STB_LOCAL, 1},
                                        {5, 7, 0, STT_FUNC, STB_WEAK, SHN_UNDEF}});
    b.sections = {
        {".text", SHT_PROGBITS, RawBytes(64, std::byte{0x90}), 0x10100, SHF_ALLOC | SHF_EXECINSTR},
        {".symtab", SHT_SYMTAB, symbols, 0, 0, 3, symbol_size()},
        {".strtab", SHT_STRTAB, bytes().text("").text("one").text("label").vector()},
        {".bss", SHT_NOBITS, {}, 0x20000, SHF_ALLOC | SHF_WRITE, 0, 0, 16, 0x1000},
        {".note.gnu.build-id", SHT_NOTE, b.note("GNU", NT_GNU_BUILD_ID, "0123456789abcdefghij").vector(), 0x10200},
    };
    b.segments = {{PT_LOAD, PF_R | PF_X, 0, 0x10000, 0x400, 0x400, 0x1000},
                  {PT_LOAD, PF_R | PF_W, 0x400, 0x20000, 0, 0x1000, 0x1000}};
    return b;
  }
};

TEST_P(ElfImages, TellWhatWasPutIn) {
  const ElfBuilder built = usual();
  const RawBytes file = built.build();
  const auto image = ElfImage::parse(file);
  ASSERT_TRUE(image) << image.error().what;
  EXPECT_EQ(image->is_64(), GetParam().is_64);
  EXPECT_EQ(image->big_endian(), GetParam().big_endian);
  EXPECT_EQ(image->machine(), EM_X86_64);
  EXPECT_EQ(image->type(), ET_DYN);

  ASSERT_EQ(image->segment_count(), 2u);
  const ElfSegment s = image->segment(0);
  EXPECT_EQ(s.type, std::uint32_t{PT_LOAD});
  EXPECT_EQ(s.flags, std::uint32_t{PF_R | PF_X});
  EXPECT_EQ(s.address, 0x10000u);
  EXPECT_EQ(s.file_size, 0x400u);
  EXPECT_EQ(s.alignment, 0x1000u);
  EXPECT_EQ(image->segment(1).range(), (AddrRange{0x20000, 0x21000}));
  EXPECT_EQ(image->header_bytes().size(), built.header_size() + 2 * built.segment_size());

  ASSERT_EQ(image->section_count(), 7u);
  for (std::size_t i = 0; i < built.sections.size(); ++i) {
    const BuiltSection& expected = built.sections[i];
    const auto found = image->find_section(expected.name);
    ASSERT_TRUE(found) << expected.name;
    EXPECT_EQ(image->name(*found), expected.name);
    EXPECT_EQ(found->type, expected.type);
    EXPECT_EQ(found->flags, expected.flags);
    EXPECT_EQ(found->address, expected.address);
    EXPECT_EQ(found->offset, built.offset_of(i));
    EXPECT_EQ(found->link, expected.link);
    EXPECT_EQ(found->entry_size, expected.entry_size);
    const auto contents = image->contents(*found);
    EXPECT_EQ(RawBytes(contents.begin(), contents.end()), expected.data);
  }
  EXPECT_FALSE(image->find_section(".tex"));
  EXPECT_FALSE(image->find_section(".text2"));
  EXPECT_EQ(image->name(*image->find_section("")), "");
}

TEST_P(ElfImages, ReadSymbolsByTheirSection) {
  const RawBytes file = usual().build();
  const auto image = ElfImage::parse(file);
  const ElfSymbols symbols = image->symbols(SHT_SYMTAB);
  ASSERT_EQ(symbols.count(), 4u);
  EXPECT_EQ(symbols[1].value, 0x10100u);
  EXPECT_EQ(symbols[1].size, 16u);
  EXPECT_EQ(symbols[1].type, STT_FUNC);
  EXPECT_EQ(symbols[1].binding, STB_GLOBAL);
  EXPECT_EQ(symbols.name(symbols[1]), "one");
  EXPECT_EQ(symbols.name(symbols[2]), "label");
  EXPECT_EQ(symbols.beginning(symbols[2], 3), "lab");
  EXPECT_EQ(image->section_of(symbols[1])->address, 0x10100u);
  EXPECT_FALSE(image->section_of(symbols[3]));
  EXPECT_EQ(image->symbols(SHT_DYNSYM).count(), 0u);
}

TEST_P(ElfImages, ReadNumbersTooLargeForTheHeader) {
  ElfBuilder built = usual();
  built.numbers_in_section_0 = true;
  const RawBytes file = built.build();
  const auto image = ElfImage::parse(file);
  ASSERT_TRUE(image);
  EXPECT_EQ(image->section_count(), 7u);
  EXPECT_EQ(image->segment_count(), 2u);
  EXPECT_TRUE(image->find_section(".symtab"));
}

TEST_P(ElfImages, FindNotesByOwnerAndType) {
  const RawBytes file = usual().build();
  const auto id = ElfImage::parse(file)->build_id();
  ASSERT_EQ(id.size(), 20u);
  EXPECT_EQ(std::to_integer<char>(id[0]), '0');

  ElfBuilder by_segment = builder();
  const auto note = [&](const char* owner, std::uint32_t kind, const char* says, std::size_t unit = 4) {
    return by_segment.note(owner, kind, says, unit);
  };
  by_segment.sections = {{"x", SHT_PROGBITS, note("GNU", 1, "no").add(note("GNU", NT_GNU_BUILD_ID, "yes")).vector()}};
  by_segment.segments = {{.type = PT_NOTE, .section = 0}};
  const RawBytes segments_only = by_segment.build();
  EXPECT_EQ(ElfImage::parse(segments_only)->build_id().size(), 3u);

  const bool big = GetParam().big_endian;
  const auto find = [big](const Bytes& b, std::size_t unit, std::string_view owner, std::uint32_t type) {
    const auto found = find_note(b.vector(), big, unit, owner, type);
    return std::string(reinterpret_cast<const char*>(found.data()), found.size());
  };
  const Bytes several = note("GNU", 1, "a").add(note("G", 1, "b")).add(note("GNU", 2, "ccccc")).add(note("", 1, "d"));
  EXPECT_EQ(find(several, 4, "GNU", 1), "a");
  EXPECT_EQ(find(several, 4, "G", 1), "b");
  EXPECT_EQ(find(several, 4, "GNU", 2), "ccccc");
  EXPECT_EQ(find(several, 4, "", 1), "d");
  EXPECT_EQ(find(several, 4, "GNU", 3), "");
  EXPECT_EQ(find(several, 0, "G", 1), "b");
  const Bytes wide = note("GNU", 5, "property", 8).add(note("GNU", NT_GNU_BUILD_ID, "id", 8));
  EXPECT_EQ(find(wide, 8, "GNU", NT_GNU_BUILD_ID), "id");
  // The last note's padding may be missing; wrong sizes end the search.
  EXPECT_EQ(find(bytes().u32(2).u32(3).u32(7).text("X").u16(0).characters("abc"), 4, "X", 7), "abc");
  EXPECT_EQ(find(bytes().u32(0xffffffff).u32(4).u32(7).characters("X"), 4, "X", 7), "");
  EXPECT_EQ(find(bytes().u32(2).u32(0xfffffffd).u32(7).text("X").u16(0).characters("abc"), 4, "X", 7), "");
}

TEST_P(ElfImages, RefuseWhatIsNone) {
  const RawBytes file = usual().build();
  const auto code_with = [&file](std::size_t at, int value) {
    RawBytes changed = file;
    changed[at] = static_cast<std::byte>(value);
    const auto image = ElfImage::parse(changed);
    return image ? ErrorCode::unspecified : image.error().code;
  };
  EXPECT_EQ(code_with(0, 'X'), ErrorCode::bad_elf);
  EXPECT_EQ(code_with(EI_CLASS, 0), ErrorCode::bad_elf);
  EXPECT_EQ(code_with(EI_CLASS, 3), ErrorCode::bad_elf);
  EXPECT_EQ(code_with(EI_DATA, 0), ErrorCode::bad_elf);
  EXPECT_EQ(code_with(EI_DATA, 3), ErrorCode::bad_elf);
  EXPECT_EQ(code_with(EI_VERSION, 2), ErrorCode::bad_elf);
  EXPECT_EQ(ElfImage::parse({}).error().code, ErrorCode::truncated);
}

/// Makes all queries. Under AddressSanitizer the bytes are a heap block of exactly their size.
std::size_t ask_everything(const ElfImage& image) {
  std::size_t sum = image.header_bytes().size() + image.build_id().size();
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment s = image.segment(i);
    for (const std::byte b : image.at_address(s.address, s.file_size)) sum += std::to_integer<std::size_t>(b);
    sum += image.from_address(s.address + 1).size();
  }
  for (std::size_t i = 0; i < image.section_count(); ++i) {
    const ElfSection s = image.section(i);
    for (const std::byte b : image.contents(s)) sum += std::to_integer<std::size_t>(b);
    sum += image.name(s).size();
  }
  for (const ElfSymbols& symbols :
       {image.symbols(SHT_SYMTAB), image.symbols(SHT_DYNSYM), image.dynamic_symbols(0), image.dynamic_symbols(0x10000)})
    for (std::size_t i = 0; i < symbols.count(); ++i)
      sum += symbols.name(symbols[i]).size() + symbols.beginning(symbols[i], 3).size() + symbols[i].value;
  return sum;
}

TEST_P(ElfImages, CutAnywhereGiveWhatIsLeft) {
  const RawBytes file = usual().build();
  for (std::size_t size = 0; size <= file.size(); ++size) {
    const RawBytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const auto image = ElfImage::parse(cut);
    const std::size_t header = builder().header_size();
    ASSERT_EQ(image.has_value(), size >= header) << size;
    if (!image) continue;
    ask_everything(*image);
    // The section headers come last: without all of them there are none.
    EXPECT_EQ(image->section_count(), size == file.size() ? 7u : 0u) << size;
  }
}

TEST_P(ElfImages, WithRandomBytesChangedDoNoHarm) {
  std::mt19937 random(17);
  const RawBytes file = usual().build();
  for (int i = 0; i < 20000; ++i) {
    RawBytes changed = file;
    for (unsigned n = 1 + random() % 4; n != 0; --n)
      changed[random() % changed.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    if (const auto image = ElfImage::parse(changed)) ask_everything(*image);
  }
}

/// Puts dynamic symbols into one segment at 0x10000; `bias` is added to the dynamic section's pointers.
ElfBuilder with_dynamic_section(ElfBuilder b, bool gnu_hash, Addr bias) {
  Bytes strings = b.bytes(), hash = b.bytes(), dynamic = b.bytes();
  strings.text("").text("undefined").text("first").text("second");
  const RawBytes symbols = b.symbols({{1, 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                      {11, 0x10010, 4, STT_FUNC, STB_GLOBAL, 1},
                                      {17, 0x10020, 4, STT_FUNC, STB_GLOBAL, 1}});
  if (gnu_hash)
    hash.u32(2).u32(2).u32(1).u32(6).word(~0ull).u32(2).u32(3).u32(0x11).u32(0x21);  // two chains of one symbol
  else
    hash.u32(1).u32(4).u32(3).u32(0).u32(0).u32(1).u32(2);
  b.segments = {{}, {}};
  b.sections = {
      {"a", SHT_PROGBITS, symbols}, {"b", SHT_PROGBITS, strings.vector()}, {"c", SHT_PROGBITS, hash.vector()}};
  const Addr base = 0x10000 + bias;
  dynamic.word(DT_SYMTAB).word(base + b.offset_of(0)).word(DT_STRTAB).word(base + b.offset_of(1));
  dynamic.word(DT_STRSZ).word(strings.size());
  dynamic.word(gnu_hash ? DT_GNU_HASH : DT_HASH).word(base + b.offset_of(2)).word(DT_NULL).word(0);
  b.sections.push_back({"d", SHT_PROGBITS, dynamic.vector()});
  const std::uint64_t end = b.offset_of(4);
  b.segments = {{PT_LOAD, PF_R, 0, 0x10000, end, end},
                {PT_DYNAMIC, PF_R, b.offset_of(3), 0x10000 + b.offset_of(3), dynamic.size(), dynamic.size()}};
  return b;
}

TEST_P(ElfImages, ReadSymbolsByTheDynamicSegment) {
  for (const bool gnu_hash : {false, true})
    for (const Addr bias : {Addr{0}, Addr{0x7000000}}) {
      const RawBytes file = with_dynamic_section(builder(), gnu_hash, bias).build();
      for (const bool loaded : {false, true}) {
        const auto image = loaded ? ElfImage::parse_loaded(file, file.size()) : ElfImage::parse(file);
        ASSERT_TRUE(image);
        const ElfSymbols symbols = image->dynamic_symbols(bias);
        ASSERT_EQ(symbols.count(), 4u) << gnu_hash << bias << loaded;
        EXPECT_EQ(symbols.name(symbols[2]), "first");
        EXPECT_EQ(symbols.name(symbols[3]), "second");
        EXPECT_EQ(symbols[3].value, 0x10020u);
        ask_everything(*image);
      }
    }
}

TEST_P(ElfImages, LoadedOnesAreReadOnlyWhereSegmentsAreReadable) {
  ElfBuilder b = with_dynamic_section(builder(), true, 0);
  b.segments[0].flags = PF_X;
  const RawBytes file = b.build();
  EXPECT_EQ(ElfImage::parse_loaded(file, file.size())->dynamic_symbols(0).count(), 0u);
  EXPECT_EQ(ElfImage::parse(file)->dynamic_symbols(0).count(), 4u);
  // Headers beyond what is readable at the start do not exist.
  EXPECT_EQ(ElfImage::parse_loaded(file, b.header_size())->segment_count(), 0u);
  EXPECT_FALSE(ElfImage::parse_loaded(file, b.header_size() - 1));
}

/// BOLT writes program headers on a page of their own, in a segment whose distance from the first one is the same in
/// memory and in the file. If the distances differ, other bytes are there.
TEST_P(ElfImages, LoadedOnesMayHaveTheirProgramHeadersBehind) {
  for (const Addr further : {0u, 0x1000u}) {
    ElfBuilder b = builder();
    const std::size_t size = GetParam().is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    b.segments = {{PT_LOAD, PF_R, 0, 0x10000, 0x1000, 0x1000, 0x1000},
                  {PT_LOAD, PF_R, 0x2000, 0x12000 + further, 2 * size, 2 * size, 0x1000}};
    RawBytes file = b.build();
    const std::size_t headers = b.header_size();
    file.resize(0x4000);
    std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(headers), 2 * size, file.begin() + 0x2000);
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(headers), 2 * size, std::byte{0});
    const bool is_64 = GetParam().is_64;
    const std::size_t offset = is_64 ? offsetof(Elf64_Ehdr, e_phoff) : offsetof(Elf32_Ehdr, e_phoff);
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(offset), is_64 ? 8 : 4, std::byte{0});
    file[offset + (!GetParam().big_endian ? 1 : is_64 ? 6 : 2)] = std::byte{0x20};  // 0x2000
    FakeMemory memory;
    memory.put_bytes(0x7000'0000, file);
    const auto parts = make_mapped<MemoryParts>(memory, AddrRange{0x7000'0000, 0x7000'4000});
    const auto image = ElfImage::parse_loaded(*parts);
    ASSERT_TRUE(image);
    EXPECT_EQ(image->segment_count(), further == 0 ? 2u : 0u);
    EXPECT_EQ(ElfImage::parse_loaded(file, 0x1000)->segment_count(), 0u);
    ask_everything(*image);
  }
}

TEST_P(ElfImages, WithLyingHashTablesHaveNoSymbols) {
  for (const bool gnu_hash : {false, true})
    for (std::uint32_t lie : {0u, 0x10000u, 0x7fffffffu, 0xffffffffu})
      for (std::size_t field = 0; field < 4; ++field) {
        ElfBuilder b = with_dynamic_section(builder(), gnu_hash, 0);
        RawBytes& hash = b.sections[2].data;
        std::ranges::copy(bytes().u32(lie).vector(), hash.begin() + static_cast<std::ptrdiff_t>(4 * field));
        const RawBytes file = b.build();
        ask_everything(*ElfImage::parse(file));
      }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ElfImages,
                         testing::Values(Kind{true, false}, Kind{true, true}, Kind{false, false}, Kind{false, true}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace jitunwind::test
