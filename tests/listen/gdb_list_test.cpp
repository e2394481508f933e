// GDB's list and its files, as engines make them and with errors.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "jitunwind/adapters/gdb_jit/code_files_p.h"
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/sdk/dialects/jit_object.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/listen/jit_file.h"
#include "tests/support/command.h"
#include "tests/support/whole_procedure.h"

namespace jitunwind {
static void PrintTo(const GdbListEntry& entry, std::ostream* out) {
  *out << std::hex << entry.entry << ": " << entry.file << "+" << entry.size << std::dec;
}
}  // namespace jitunwind

namespace jitunwind::test {
namespace {

constexpr Addr k_listed = 0x7'0000'0000;

Addr place_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Result<GdbList> read(const void* descriptor) {
  static const LocalMemory memory;
  return read_gdb_list(place_of(descriptor), memory, *host_arch());
}

TEST(GdbList, IsReadAsItIsChained) {
  const ListEntry last{nullptr, nullptr, 0x3000, 30};
  const ListEntry without_file{&last, nullptr, 0, 20};
  const ListEntry first{&without_file, nullptr, 0x1000, 10};
  const ListDescriptor descriptor{.first = &first};
  const auto list = read(&descriptor);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->entries, (std::vector<GdbListEntry>{{place_of(&first), 0x1000, 10}, {place_of(&last), 0x3000, 30}}));
  EXPECT_FALSE(list->broken);
}

TEST(GdbList, EndsWhereItIsBroken) {
  std::vector<ListEntry> ring(5, ListEntry{nullptr, nullptr, 0x1000, 10});
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i].next = &ring[i + 1 == ring.size() ? 2 : i + 1];
  const ListDescriptor descriptor{.first = &ring[0]};
  auto list = read(&descriptor);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->broken.value_or(Error{}).code, ErrorCode::e_cycle);
  EXPECT_LE(list->entries.size(), 3 * ring.size());
  ring[3].next = reinterpret_cast<const ListEntry*>(std::uintptr_t{0x18});
  list = read(&descriptor);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->broken.value_or(Error{}).code, ErrorCode::unreadable_memory);
  EXPECT_EQ(list->entries.size(), 4u) << "what was read before stays";
}

/// next, previous, file, size: on x86 with 32 bits the size follows at once, on ARM it is aligned by 8 bytes. The
/// compiler says so of x86: tests/targets/i386_program.c.
// covers: XP04
TEST(GdbList, IsReadAsEachCpuAlignsIt) {
  struct Cpu {
    const Arch* arch;
    std::size_t size_at;
  };
  const Cpu k_cpus[] = {{&arch::x86, 12}, {&arch::arm, 16}, {find_arch(EM_ARM, true), 16}, {&arch::s390x, 24}};
  for (const Cpu& cpu : k_cpus) {
    constexpr Addr k_list = 0x1000;
    const std::size_t word = cpu.arch->word_size;
    Bytes bytes = Bytes::in_order(cpu.arch->big_endian).fill(128, 0).put(0, 1, 4);
    bytes.put(8 + word, k_list + 64, word).put(64 + 2 * word, 0x7000, word).put(64 + cpu.size_at, 99, 8);
    const BytesMemory memory({{k_list, bytes.vector()}});
    const auto list = read_gdb_list(k_list, memory, *cpu.arch);
    ASSERT_TRUE(list) << cpu.arch->name;
    EXPECT_EQ(list->entries, (std::vector<GdbListEntry>{{k_list + 64, 0x7000, 99}})) << cpu.arch->name;
  }
}

TEST(GdbList, IsRefusedWithoutADescriptor) {
  const ListDescriptor of_later{.version = 2};
  EXPECT_EQ(read(&of_later).error().code, ErrorCode::unsupported_version);
  EXPECT_EQ(read(reinterpret_cast<const void*>(std::uintptr_t{0x10})).error().code, ErrorCode::unreadable_memory);
}

std::string row_at(const JitObject& object, Addr at, const Arch& arch = *host_arch()) {
  FrameRow row;
  const Found found = object.find_row(at, row);
  if (!found) return std::string("error: ") + found.error().what;
  return *found ? to_text(row, arch) : "no row";
}

std::string name_at(const JitObject& object, Addr at) {
  std::array<char, 32> name{};
  ProcedureName out;
  const Found found = object.find_name(at, name, out);
  return found && *found ? name.data() : "";
}

TEST(JitObject, HasNamesAndRowsWhereItsCodeIs) {
  const auto object = JitFile(frames_like_phps(), k_listed).read();
  ASSERT_TRUE(object);
  ASSERT_EQ(object->code().size(), 1u);
  EXPECT_EQ(object->code()[0], (AddrRange{k_listed, k_listed + 0x100}));
  EXPECT_EQ(row_at(*object, k_listed + 4), ToldFrameCode::k_saved_row);
  EXPECT_EQ(row_at(*object, k_listed + 16), "no row");
  EXPECT_EQ(name_at(*object, k_listed + 15), "f");
  EXPECT_EQ(name_at(*object, k_listed + 0x41), "g");
  EXPECT_EQ(name_at(*object, k_listed + 0x30), "");
  ProcedureInfo info;
  ASSERT_TRUE(*object->find_procedure(k_listed + 4, info));
  EXPECT_EQ(info.range, (AddrRange{k_listed, k_listed + 16}));
}

/// Linked files have addresses where others have offsets.
TEST(JitObject, IsLinkedOrNot) {
  JitFile file(frames_like_phps(), k_listed, k_listed);
  file.elf.type = ET_EXEC;
  const auto object = file.read();
  ASSERT_TRUE(object);
  EXPECT_EQ(name_at(*object, k_listed + 15), "f");
  EXPECT_EQ(row_at(*object, k_listed + 4), ToldFrameCode::k_saved_row);
}

TEST(JitObject, IsWrittenAnewForARegistry) {
  const auto object = JitFile(frames_like_phps(), k_listed).read();
  ASSERT_TRUE(object);
  const auto procedures = object->procedures();
  ASSERT_EQ(procedures.all.size(), 2u);
  EXPECT_EQ(procedures.all[0].name, "f");
  EXPECT_EQ(procedures.all[1].name, "g");
  EXPECT_FALSE(procedures.all[1].fde);
  ASSERT_TRUE(procedures.all[0].fde);
  SectionView bytes({procedures.frames, 0x1000});
  const CfiContext context{.arch = *host_arch()};
  const auto fde = read_fde(bytes, context, 0x1000 + *procedures.all[0].fde);
  ASSERT_TRUE(fde);
  EXPECT_EQ(fde->range, procedures.all[0].code);
  FrameRow row;
  ASSERT_TRUE(jitunwind::row_at(*fde, context, k_listed + 4, row));
  EXPECT_EQ(to_text(row, *host_arch()), ToldFrameCode::k_saved_row);
}

TEST(JitObject, IsWhatOurOwnAdapterTellsGdb) {
  FrameRow entry = entry_row(*host_arch());
  const std::vector<OffsetRow> rows{{0, entry}};
  DebuggedProcedure procedure;
  procedure.code = {k_listed, k_listed + 32};
  procedure.name = "ours";
  procedure.cfi = *emit_eh_frame({procedure.code, rows}, *host_arch());
  procedure.cfi.resize(procedure.cfi.size() - 4);  // none ends the section
  const FileProcedure of_file{&procedure};
  const auto object = JitObject::read(make_symbol_file(*host_arch(), {&of_file, 1}), *host_arch());
  ASSERT_TRUE(object);
  EXPECT_EQ(name_at(*object, k_listed + 31), "ours");
  EXPECT_EQ(row_at(*object, k_listed + 31), to_text(entry, *host_arch()));
}

TEST(JitObject, SaysNothingOfOthersCode) {
  CfiSection section(0);
  const Addr cie = section.cie(host_cie());
  section.fde(cie, k_listed + 0xf8, 16, {});  // reaches behind its section
  section.fde(cie, 0x1000, 16, {});
  section.fde(cie, k_listed + 0x20, 16, {0x3f});  // no instruction
  const auto object = JitFile(section.data().vector(), k_listed).read();
  ASSERT_TRUE(object);
  EXPECT_EQ(row_at(*object, k_listed + 0xf8), "no row");
  EXPECT_EQ(row_at(*object, 0x1000), "no row");
  EXPECT_EQ(row_at(*object, k_listed + 0x20).substr(0, 5), "error");
  EXPECT_TRUE(object->procedures().all.size() == 2 && !object->procedures().all[0].fde) << "no row to register";
}

TEST(JitObject, IsRefusedWhereItIsNone) {
  const auto code_of = [](const RawBytes& file) { return JitObject::read(file, *host_arch()).error().code; };
  EXPECT_EQ(code_of({}), ErrorCode::truncated);
  EXPECT_EQ(code_of(RawBytes(100)), ErrorCode::bad_elf);
  JitFile other(frames_like_phps(), k_listed);
  other.elf.machine = EM_386;
  EXPECT_EQ(code_of(other.build()), ErrorCode::bad_structure);
  JitFile without_code(frames_like_phps(), k_listed);
  without_code.elf.sections[0].flags = SHF_ALLOC;
  EXPECT_EQ(code_of(without_code.build()), ErrorCode::bad_structure);
  const RawBytes file = JitFile(frames_like_phps(), k_listed).build();
  for (std::size_t size = 0; size < file.size(); ++size) {
    const auto cut =
        JitObject::read(RawBytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)), *host_arch());
    if (cut) (void)cut->procedures();
  }
}

// A compiler's object file that was placed at an address, compared with the same file linked to that address, as
// readelf reads it.

constexpr Addr k_text = 0x1000000, k_eh_frame = 0x1100000;

RawBytes contents_of(const std::string& path) {
  const std::string text = text_of_file(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// An engine fills in the addresses of its sections.
template <class Ehdr, class Shdr>
void place_sections(RawBytes& file, const std::map<std::string, Addr>& sections) {
  Ehdr head;
  std::memcpy(&head, file.data(), sizeof head);
  auto* const headers = reinterpret_cast<Shdr*>(file.data() + head.e_shoff);
  const auto* const names = reinterpret_cast<const char*>(file.data() + headers[head.e_shstrndx].sh_offset);
  for (std::size_t i = 0; i < head.e_shnum; ++i)
    if (const auto placed = sections.find(names + headers[i].sh_name); placed != sections.end())
      headers[i].sh_addr = static_cast<decltype(headers[i].sh_addr)>(placed->second);
}
void place(RawBytes& file, const std::map<std::string, Addr>& sections) {
  if (file.at(EI_CLASS) == std::byte{ELFCLASS64})
    place_sections<Elf64_Ehdr, Elf64_Shdr>(file, sections);
  else
    place_sections<Elf32_Ehdr, Elf32_Shdr>(file, sections);
}

struct SeenRow {
  Addr at;
  std::string text;
};

/// "   LOC           CFA      rbx   ra", and below it an address, the CFA, and rules in the same order.
std::vector<SeenRow> rows_by_readelf(const std::string& path) {
  std::vector<SeenRow> rows;
  std::vector<std::string> columns;
  bool of_a_procedure = false;
  for (const std::string& line : lines_of(output_of(BINUTILS "readelf -wF '" + path + "' 2>/dev/null"))) {
    std::istringstream in(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (!words.empty() && words[0] == "LOC") columns = {words.begin() + 1, words.end()};
    if (line.find("CIE") != line.npos) of_a_procedure = false;
    if (line.find("FDE") != line.npos) of_a_procedure = true;
    if (!of_a_procedure || words.empty()) columns.clear();
    if (words.size() != columns.size() + 1 || columns.empty() || words[0] == "LOC") continue;
    std::string text = "cfa=" + (words[1].ends_with("+0") ? words[1].substr(0, words[1].size() - 2) : words[1]);
    if (text.starts_with("cfa=r13")) text.replace(4, 3, "sp");  // it has no names for registers of ARM
    for (std::size_t i = 1; i < columns.size(); ++i)
      if (words[i + 1] != "u") text += " " + columns[i] + "=[cfa" + words[i + 1].substr(1) + "]";
    rows.push_back({std::stoull(words[0], nullptr, 16), text});
  }
  return rows;
}

/// "other_cpu.c   5   0x1000000   x": each address has the line of the last row that names it.
std::map<Addr, unsigned> lines_by_readelf(const std::string& path) {
  std::map<Addr, unsigned> lines;
  for (const std::string& text : lines_of(output_of(BINUTILS "readelf --debug-dump=decodedline '" + path + "'"))) {
    std::istringstream in(text);
    std::string file, line, address;
    if (in >> file >> line >> address && address.starts_with("0x") && line != "-")
      lines[std::stoull(address, nullptr, 16)] = static_cast<unsigned>(std::stoul(line));
  }
  return lines;
}

/// Expects that the unlinked file at `path` has the rows, names and lines of the same file linked by `linker`.
void expect_what_readelf_sees(const std::string& path, const std::string& linker, const Arch& arch, bool has_lines) {
  const TemporaryFolder folder;
  const std::string linked = folder / "linked";
  (void)output_of(linker +
                  " --unresolved-symbols=ignore-all --no-eh-frame-hdr -e 0 -Ttext=0x1000000 "
                  "--section-start=.eh_frame=0x1100000 -o '" +
                  linked + "' '" + path + "'");
  RawBytes file = contents_of(path);
  place(file, {{".text", k_text}, {".eh_frame", k_eh_frame}});
  const auto object = JitObject::read(file, arch);
  ASSERT_TRUE(object) << object.error().what;
  const auto rows = rows_by_readelf(linked);
  for (const SeenRow& row : rows) EXPECT_EQ(row_at(*object, row.at, arch), row.text) << std::hex << row.at;
  std::size_t functions = 0;
  for (const std::string& line : lines_of(output_of(BINUTILS "readelf -sW '" + linked + "'"))) {
    std::istringstream in(line);
    std::string number, value, size, type, binding, visibility, section, name;
    in >> number >> value >> size >> type >> binding >> visibility >> section >> name;
    if (type != "FUNC" || section == "UND") continue;
    ++functions;
    EXPECT_EQ(name_at(*object, std::stoull(value, nullptr, 16) + std::stoull(size) - 1), name.substr(0, 31));
  }
  EXPECT_GE(functions, 3u);
  EXPECT_GT(rows.size(), 2 * functions) << "they have prologues and epilogues";
  EXPECT_EQ(object->procedures().all.size(), functions);
  const auto lines = lines_by_readelf(linked);
  EXPECT_EQ(!lines.empty(), has_lines);
  // Line 0 stands for code without a line.
  for (const auto& [at, line] : lines)
    EXPECT_EQ(object->find_line(at).value_or(SourceLine{}).line, line) << std::hex << at;
}

TEST(JitObject, IsWhatReadelfSeesOfTheSameLinked) {
  expect_what_readelf_sees(OBJECT_FILE, BINUTILS "ld", *host_arch(), false);
}

#ifdef CLANG
/// Files of 32-bit CPUs, whose relocations have no addends: both kinds of call frame information, by distances and by
/// addresses; and lines.
class JitObjectOf32Bits : public testing::TestWithParam<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Kinds, JitObjectOf32Bits,
                         testing::Values(std::pair("x86", "-target i386-linux-gnu -fasynchronous-unwind-tables"),
                                         std::pair("x86", "-target i386-linux-gnu -fno-asynchronous-unwind-tables"),
                                         std::pair("arm",
                                                   "-target arm-linux-gnueabihf -fexceptions -fdwarf-exceptions"),
                                         std::pair("arm", "-target arm-linux-gnueabihf -fno-exceptions")));

// covers: XP04
TEST_P(JitObjectOf32Bits, IsWhatReadelfSeesOfTheSameLinked) {
  const auto& [cpu, options] = GetParam();
  const std::string name = cpu;  // no part of a binding, which clang 14 lets no lambda see
  const auto arches = all_arches();
  const Arch& arch = **std::ranges::find_if(arches, [&](const Arch* one) { return one->name == name; });
  const TemporaryFolder folder;
  const std::string path = folder / "object.o";
  (void)output_of(CLANG " -O1 -g -fno-pic -c -o '" + path + "' " SOURCE_FILE " " + options);
  expect_what_readelf_sees(path, LLD, arch, true);
}

#ifdef HAS_ZLIB
/// Has so many functions that compression makes sections smaller; it leaves others as they are.
class CompressedJitObject : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  CompressedJitObject() {
    std::ofstream source(folder_ / "many.c");
    for (int i = 0; i < 40; ++i) source << "int f" << i << "(int (*g)(int)) {\n  return g(" << i << ") + g(1);\n}\n";
    source.close();
    (void)output_of(CLANG " -O1 -g -fno-pic -fno-asynchronous-unwind-tables -c -o '" + path_ + "' -target " +
                    GetParam().second + " '" + (folder_ / "many.c") + "'");
    (void)output_of(BINUTILS "objcopy --compress-debug-sections=zlib '" + path_ + "'");
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "object.o";
  const Arch& arch_ = **std::ranges::find(all_arches(), std::string_view(GetParam().first), &Arch::name);
};
INSTANTIATE_TEST_SUITE_P(Cpus, CompressedJitObject,
                         testing::Values(std::pair("x86", "i386-linux-gnu"), std::pair("x86-64", "x86_64-linux-gnu")));

TEST_P(CompressedJitObject, IsWhatReadelfSeesOfTheSameLinked) { expect_what_readelf_sees(path_, LLD, arch_, true); }

/// The frames, or a section in front of them, are broken.
TEST_P(CompressedJitObject, SaysWhyItsFramesCannotBeRead) {
  for (const char* const name : {".debug_frame", ".debug_str"}) {
    RawBytes file = contents_of(path_);
    place(file, {{".text", k_text}});
    const auto image = ElfImage::parse(file);
    ASSERT_TRUE(image);
    const auto section = image->find_section(name), frames = image->find_section(".debug_frame");
    ASSERT_TRUE(section && (section->flags & SHF_COMPRESSED) != 0) << name;
    ASSERT_TRUE(frames && frames->offset >= section->offset && (frames->flags & SHF_COMPRESSED) != 0) << name;
    const auto middle = static_cast<std::size_t>(section->offset + section->size / 2);
    std::ranges::fill(std::span(file).subspan(middle, 8), std::byte{0});
    const auto object = JitObject::read(file, arch_);
    ASSERT_TRUE(object) << object.error().what;
    EXPECT_EQ(row_at(*object, k_text, arch_), "error: section compressed by zlib, which is broken or too large")
        << name;
    EXPECT_EQ(row_at(*object, k_text - 1, arch_), "no row");
    EXPECT_EQ(name_at(*object, k_text), "f0");
  }
}
#endif
#endif

}  // namespace
}  // namespace jitunwind::test
