// ELF files of this system and of other CPUs, compared with readelf: every section, segment, symbol and build id.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

struct Compared {
  std::size_t sections = 0;
  std::size_t segments = 0;
  std::size_t symbols = 0;
  std::size_t build_ids = 0;
};

using Lines = std::vector<std::string>;

/// "  [ 1] .text PROGBITS 0000000000001020 001020 000030 10  AX  0   0 16": number, name (perhaps none), type, address,
/// offset, size, entry size, flags (perhaps none), link, info, alignment.
void compare_sections(const std::string& path, const Lines& lines, const ElfImage& image, Compared& compared) {
  std::size_t count = 0;
  for (const std::string& line : lines) {
    const std::size_t end = line.find(']');
    if (line.rfind("  [", 0) != 0 || end == std::string::npos || line[end - 1] < '0' || line[end - 1] > '9') continue;
    const std::size_t index = std::stoul(line.substr(3, end - 3));
    ASSERT_LT(index, image.section_count()) << path;
    const ElfSection s = image.section(index);
    ++count;
    std::istringstream in(line.substr(end + 1));
    std::string name, type;
    if (!image.name(s).empty()) in >> name;
    Addr address = 0, offset = 0, size = 0, entry_size = 0;
    in >> type >> std::hex >> address >> offset >> size >> entry_size;
    ASSERT_TRUE(in) << line;
    EXPECT_EQ(image.name(s), name) << line;
    EXPECT_EQ(s.address, address) << line;
    EXPECT_EQ(s.offset, offset) << line;
    EXPECT_EQ(s.size, size) << line;
    EXPECT_EQ(s.entry_size, entry_size) << line;
    std::vector<std::string> rest;
    for (std::string field; in >> field;) rest.push_back(field);
    ASSERT_GE(rest.size(), 3u) << line;
    EXPECT_EQ(s.link, std::stoul(rest[rest.size() - 3])) << line;
    EXPECT_EQ(s.info, std::stoul(rest[rest.size() - 2])) << line;
    EXPECT_EQ(s.alignment, std::stoul(rest[rest.size() - 1])) << line;
  }
  EXPECT_EQ(image.section_count(), count) << path;
  compared.sections += count;
}

/// "  LOAD 0x000000 0x0000000000000000 0x0000000000000000 0x000618 0x000618 R E 0x1000".
void compare_segments(const std::string& path, const Lines& lines, const ElfImage& image, Compared& compared) {
  std::size_t count = 0;
  for (const std::string& line : lines) {
    std::istringstream in(line);
    std::string type, offset;
    Addr address = 0, physical = 0, file_size = 0, memory_size = 0;
    if (!(in >> type >> offset >> std::hex >> address >> physical >> file_size >> memory_size) ||
        offset.rfind("0x", 0) != 0)
      continue;
    ASSERT_LT(count, image.segment_count()) << path;
    const ElfSegment s = image.segment(count++);
    EXPECT_EQ(s.offset, std::stoull(offset, nullptr, 16)) << line;
    EXPECT_EQ(s.address, address) << line;
    EXPECT_EQ(s.file_size, file_size) << line;
    EXPECT_EQ(s.memory_size, memory_size) << line;
    // Flags as "R E", then the alignment.
    const std::size_t last = line.find_last_of(' ');
    const std::string flags = line.substr(last - 3, 3);
    EXPECT_EQ((s.flags & 4) != 0, flags.find('R') != std::string::npos) << line;
    EXPECT_EQ((s.flags & 2) != 0, flags.find('W') != std::string::npos) << line;
    EXPECT_EQ((s.flags & 1) != 0, flags.find('E') != std::string::npos) << line;
    EXPECT_EQ(s.alignment, std::stoull(line.substr(last), nullptr, 16)) << line;
  }
  EXPECT_EQ(image.segment_count(), count) << path;
  compared.segments += count;
}

/// The next column of a symbol's line. readelf writes a value that has no name in several words: "<OS specific>: 10"
/// for the binding STB_GNU_UNIQUE in a file whose EI_OSABI is not ELFOSABI_GNU, as other linkers than GNU ld leave it.
std::string next_column(std::istream& in) {
  std::string word, more;
  in >> word;
  if (word.empty() || word.front() != '<') return word;
  while (word.back() != ':' && in >> more) word += " " + more;
  in >> more;
  return word + " " + more;
}

/// "Symbol table '.symtab' contains 8 entries:", a line of titles, then
/// "     7: 0000000000001020    16 FUNC    GLOBAL DEFAULT   12 name@VERSION".
void compare_symbols(const std::string& path, const Lines& lines, const std::string& table, const ElfSymbols& symbols,
                     Compared& compared) {
  std::size_t count = 0;
  bool inside = false;
  for (const std::string& line : lines) {
    if (line.rfind("Symbol table", 0) == 0) inside = line.find("'" + table + "'") != std::string::npos;
    const std::size_t colon = line.find(": ");
    if (!inside || colon == std::string::npos || line.find_first_not_of(" 0123456789") != colon) continue;
    ASSERT_EQ(std::stoul(line), count) << line;
    ASSERT_LT(count, symbols.count()) << path;
    const ElfSymbol s = symbols[count++];
    std::istringstream in(line.substr(colon + 1));
    Addr value = 0;
    in >> std::hex >> value;
    const std::string size = next_column(in), type = next_column(in), binding = next_column(in),
                      visibility = next_column(in), section = next_column(in), name = next_column(in);
    EXPECT_EQ(s.value, value) << line;
    EXPECT_EQ(s.size, std::stoull(size, nullptr, 0)) << line;
    if (section.find_first_not_of("0123456789") == std::string::npos) {
      EXPECT_EQ(s.section, std::stoul(section)) << line;
      // readelf names section symbols after their section and appends versions. The assembler's own names end in what
      // is not printed: ".L0 ".
      const std::string all(symbols.name(s)), own = all.substr(0, all.find(' '));
      if (!own.empty()) {
        EXPECT_EQ(name.substr(0, own.size()), own) << line;
      }
    }
  }
  EXPECT_EQ(symbols.count(), count) << path;
  compared.symbols += count;
}

void compare_build_id(const std::string& path, const std::string& text, const ElfImage& image, Compared& compared) {
  const std::size_t at = text.find("Build ID: ");
  std::string own;
  for (const std::byte b : image.build_id()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(b));
    own += digits;
  }
  EXPECT_EQ(own, at == std::string::npos ? "" : text.substr(at + 10, text.find('\n', at) - at - 10)) << path;
  compared.build_ids += !own.empty();
}

/// The `section` and `dynamic` symbols of one file are equal.
void compare_dynamic_segment(const std::string& path, const ElfImage& image) {
  const ElfSymbols by_section = image.symbols(SHT_DYNSYM);
  const ElfSymbols by_segment = image.dynamic_symbols(0);
  if (by_section.count() == 0) return;
  // DT_GNU_HASH counts the hashed symbols: only symbols that are defined elsewhere may be missing at the end.
  ASSERT_LE(by_segment.count(), by_section.count()) << path;
  for (std::size_t i = 0; i < by_section.count(); ++i) {
    if (i >= by_segment.count()) {
      EXPECT_EQ(by_section[i].section, 0u) << path << " " << i;
      continue;
    }
    EXPECT_EQ(by_section.name(by_section[i]), by_segment.name(by_segment[i])) << path;
    EXPECT_EQ(by_section[i].value, by_segment[i].value) << path;
  }
}

void compare_file(const std::string& path, Compared& compared) {
  const auto file = std::make_unique<FileParts>(path.c_str());
  ASSERT_TRUE(file->is_open()) << path;
  const auto image = ElfImage::parse(*file);
  ASSERT_TRUE(image) << path;
  const std::string text = output_of("readelf -W -S -l -s -n " + path + " 2>/dev/null");
  const Lines lines = lines_of(text);
  compare_sections(path, lines, *image, compared);
  compare_segments(path, lines, *image, compared);
  compare_symbols(path, lines, ".symtab", image->symbols(SHT_SYMTAB), compared);
  compare_symbols(path, lines, ".dynsym", image->symbols(SHT_DYNSYM), compared);
  compare_build_id(path, text, *image, compared);
  compare_dynamic_segment(path, *image);
}

TEST(ElfFiles, OfTheSystemReadAsReadelfReadsThem) {
  Compared compared;
  std::size_t files = 0;
  for (const std::string& path :
       lines_of(output_of("find /usr/lib/x86_64-linux-gnu /usr/bin -maxdepth 1 -type f '(' -name '*.so*' -o -name 'c*' "
                          "')' -size +8k -size -3000k -exec sh -c 'head -c 4 \"$1\" | grep -q ELF' _ '{}' ';' -print | "
                          "sort | awk 'NR % 4 == 0' | head -30"))) {
    compare_file(path, compared);
    ++files;
  }
  compare_file("/proc/" + std::to_string(::getpid()) + "/exe", compared);
  std::printf("%zu files: %zu sections, %zu segments, %zu symbols, %zu build ids\n", files + 1, compared.sections,
              compared.segments, compared.symbols, compared.build_ids);
  EXPECT_GE(files, 10u);
}

#ifdef CLANG
TEST(ElfFiles, OfOtherCpusReadAsReadelfReadsThem) {
  const TemporaryFolder folder;
  std::ofstream(folder / "f.c") << "extern int g(int); static int h(int x) { return g(x) + 1; }\n"
                                   "int f(int x) { return h(x) * 2; }\nint data = 1;\n";
  Compared compared;
  // 32 and 64 bit, both byte orders.
  for (const std::string target :
       {"i386-linux-gnu", "armv7-linux-gnueabi", "aarch64-linux-gnu", "aarch64_be-linux-gnu", "powerpc-linux-gnu",
        "powerpc64-linux-gnu", "powerpc64le-linux-gnu", "s390x-linux-gnu", "mips-linux-gnu", "mips64-linux-gnuabi64",
        "mipsel-linux-gnu", "riscv64-linux-gnu", "riscv32-linux-gnu"}) {
    const std::string object = folder / (target + ".o"), library = folder / (target + ".so");
    output_of(CLANG " --target=" + target + " -c -g -O1 -fPIC " + (folder / "f.c") + " -o " + object);
    compare_file(object, compared);
    if (target.rfind("s390x", 0) == 0) continue;                             // lld 14 does not link it
    const std::string hash = target.rfind("mips", 0) == 0 ? "sysv" : "gnu";  // MIPS has no .gnu.hash
    output_of("ld.lld -shared --build-id --hash-style=" + hash + " " + object + " -o " + library);
    compare_file(library, compared);
  }
  std::printf("%zu sections, %zu segments, %zu symbols, %zu build ids\n", compared.sections, compared.segments,
              compared.symbols, compared.build_ids);
  EXPECT_GE(compared.build_ids, 12u);
}
#endif

}  // namespace
}  // namespace jitunwind::test
