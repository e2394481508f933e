// Lines from .debug_line, compared with binutils' addr2line.
#include "jitunwind/sdk/dialects/jit_files/debug_lines.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "tests/support/cfi_assembler.h"
#include "tests/support/command.h"

namespace jitunwind::test {
namespace {

std::vector<std::byte> bytes_of(const std::string& path) {
  const std::string text = text_of_file(path);
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// A program of one file, compiled with each version of DWARF.
class DebugLinesOf : public testing::TestWithParam<const char*> {};

// covers: LS08
TEST_P(DebugLinesOf, AreThoseOfAddr2line) {
  const std::string program = GetParam();
  const auto file = bytes_of(program);
  const auto image = ElfImage::parse(file);
  ASSERT_TRUE(image);
  const auto contents = [&](const char* name) {
    const auto section = image->find_section(name);
    return section ? image->contents(*section) : std::span<const std::byte>();
  };
  const DebugLines lines(
      {contents(".debug_line"), contents(".debug_line_str"), contents(".debug_str"), image->big_endian()});
  const auto text = image->find_section(".text");
  ASSERT_TRUE(text);
  std::string command = BINUTILS "addr2line -e '" + program + "'";
  std::vector<Addr> asked;
  for (Addr at = text->range().begin; at < text->range().end; at += 3) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), " %lx", at);
    command += number.data();
    asked.push_back(at);
  }
  const auto told = lines_of(output_of(command));
  ASSERT_EQ(told.size(), asked.size());
  std::size_t known = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto line = lines.find(asked[i]);
    const std::string ours = line ? base_name(line->file) + ":" + std::to_string(line->line) : "??:0";
    const std::string theirs = base_name(told[i].substr(0, told[i].find(' ')));
    EXPECT_EQ(ours, theirs.ends_with(":?") ? "??:0" : theirs) << std::hex << asked[i];
    known += line.has_value();
  }
  EXPECT_GT(known, 20u);
}

INSTANTIATE_TEST_SUITE_P(Versions, DebugLinesOf, testing::Values(LINED_PROGRAMS), [](const auto& of) {
  return "dwarf_" + std::string(of.param).substr(std::string(of.param).size() - 1);
});

DebugLines lines_of_bytes(const Bytes& bytes) { return DebugLines({bytes.vector(), {}, {}, false}); }

/// Makes a unit of DWARF 2 with one file.
Bytes unit(const Bytes& program, unsigned range = 1, const std::string& file = "a.c") {
  const Bytes header = Bytes()
                           .u8(1)
                           .u8(1)
                           .u8(0)
                           .u8(range)
                           .u8(10)
                           .add(Bytes{0, 1, 1, 1, 1, 0, 0, 0, 1})
                           .u8(0)
                           .text(file)
                           .u8(0)
                           .u8(0)
                           .u8(0)
                           .u8(0);
  const Bytes rest = Bytes().u16(2).u32(header.size()).add(header).add(program);
  return Bytes().u32(rest.size()).add(rest);
}

const Bytes at_1000 = Bytes{0, 9, 2}.u64(0x1000);

/// Instructions without a source line have line 0 (DWARF 5, 6.2.2); clang emits such.
// covers: LS08
TEST(DebugLines, SayNothingOfCodeOfNoLine) {
  const Bytes next_row{2, 4, 1};
  const Bytes program = Bytes()
                            .add(at_1000)
                            .add(Bytes{3, 6, 1})
                            .add(Bytes{3, 0x79})
                            .add(next_row)
                            .add(Bytes{3, 8})
                            .add(next_row)
                            .add(Bytes{2, 4, 0, 1, 1});
  const DebugLines lines = lines_of_bytes(unit(program));
  const SourceLines within = lines.within({0x1000, 0x100c});
  for (const std::uint64_t offset : {0u, 3u}) {
    EXPECT_EQ(lines.find(0x1000 + offset).value().line, 7u);
    EXPECT_EQ(within.find(offset).value().line, 7u);
  }
  for (const std::uint64_t offset : {4u, 7u}) {
    EXPECT_FALSE(lines.find(0x1000 + offset));
    EXPECT_FALSE(within.find(offset));
  }
  EXPECT_EQ(lines.find(0x1008).value().line, 8u);
  EXPECT_EQ(within.find(8).value().line, 8u);
}

/// Engines that have no source give their code a line of a file that there is not.
TEST(DebugLines, SayNothingOfTheFileThatStandsForNone) {
  const Bytes program = Bytes().add(at_1000).add(Bytes{3, 6, 1}).add(Bytes{2, 8, 0, 1, 1});
  EXPECT_TRUE(lines_of_bytes(unit(program, 1, "unknown.c")).find(0x1000));
  const DebugLines lines = lines_of_bytes(unit(program, 1, "unknown"));
  EXPECT_FALSE(lines.find(0x1000));
  EXPECT_FALSE(lines.within({0x1000, 0x1008}).find(0));
}

TEST(DebugLines, EndWhereTheyAreBroken) {
  EXPECT_TRUE(lines_of_bytes({}).empty());
  EXPECT_TRUE(lines_of_bytes(Bytes().u32(100)).empty());
  EXPECT_TRUE(lines_of_bytes(Bytes().u32(~0u).u64(~0ull)).empty());
  const Bytes program = Bytes().add(at_1000).add(Bytes{3, 6, 1}).add(Bytes{2, 8, 0, 1, 1});
  const Bytes good = unit(program);
  EXPECT_EQ(lines_of_bytes(good).find(0x1007)->line, 7u);
  EXPECT_EQ(lines_of_bytes(good).find(0x1007)->file, "a.c");
  EXPECT_FALSE(lines_of_bytes(good).find(0x1008));
  EXPECT_FALSE(lines_of_bytes(good).find(0xfff));
  EXPECT_TRUE(lines_of_bytes(unit(program, 0)).empty()) << "a division by zero";
  EXPECT_EQ(lines_of_bytes(unit({}, 0).add(good)).find(0x1000)->line, 7u) << "the next unit counts";
  for (std::size_t size = 0; size < good.size(); ++size) {
    Bytes cut = good;
    cut.vector().resize(size);
    (void)lines_of_bytes(cut);
  }
}

}  // namespace
}  // namespace jitunwind::test
