// Parsers of dialects, on the output of engines and on wrong data.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/sdk/dialects/itt_event.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "tests/listen/dump_writer.h"
#include "tests/listen/method_load.h"

namespace jitunwind::test {
namespace {

struct Heard {
  std::vector<std::string> lines;
  void operator()(const NamedCode& said) {
    lines.push_back(std::to_string(said.code.begin) + "+" + std::to_string(said.code.size()) + " " +
                    std::string(said.name));
  }
};

std::vector<std::string> read_in_pieces(const std::string& text, std::size_t size, std::size_t* passed_by = nullptr) {
  PerfMapReader reader;
  Heard heard;
  for (std::size_t at = 0; at < text.size(); at += size)
    reader.read(std::string_view(text).substr(at, size), std::ref(heard));
  if (passed_by != nullptr) *passed_by = reader.passed_by();
  return heard.lines;
}

TEST(PerfMap, IsReadInPiecesOfAnySize) {
  const std::string text = "10 8 a\n0x20 0x10 LazyCompile:~f file.js:1\n\n30 5 \xff\x01\tb\n40 1 unfinished";
  const std::vector<std::string> expected{"16+8 a", "32+16 LazyCompile:~f file.js:1", "48+5 \xff\x01\tb"};
  for (std::size_t size = 1; size <= text.size(); ++size) EXPECT_EQ(read_in_pieces(text, size), expected) << size;
}

TEST(PerfMap, TellsTheLinesOfThisLibrary) {
  const auto is_own = [](std::string_view line) {
    NamedCode said;
    return parse_perf_map_line(line, said) && said.is_own;
  };
  EXPECT_TRUE(is_own("07f00 040 own"));
  for (const char* others : {"7f00 40 a", "0x7f00 0x40 a", "07f00 40 a", "7f00 040 a", "0000000000007f00 00000040 a"})
    EXPECT_FALSE(is_own(others)) << others;
}

TEST(PerfMap, PassesByWhatIsNoLine) {
  std::size_t passed_by = 0;
  const std::string text =
      "10 8\nname\n10 8 \n-1 8 a\n10 0 empty\nffffffffffffffff 2 wraps\n123456789abcdef01 1 too many digits\n10 8a\n"
      "10 8 good\n";
  EXPECT_EQ(read_in_pieces(text, 7, &passed_by), std::vector<std::string>{"16+8 good"});
  EXPECT_EQ(passed_by, 8u);
}

TEST(PerfMap, PassesByALineWithoutEnd) {
  const std::string text = "10 8 " + std::string(3 * PerfMapReader::k_longest_line, 'n') + "\n20 8 good\n";
  for (const std::size_t size : {std::size_t{1000}, text.size()}) {
    std::size_t passed_by = 0;
    EXPECT_EQ(read_in_pieces(text, size, &passed_by), std::vector<std::string>{"32+8 good"}) << size;
    EXPECT_EQ(passed_by, 1u);
  }
}

Result<IttEvent> read(std::int32_t event, const void* data) {
  static const LocalMemory memory;
  return read_itt_event(event, reinterpret_cast<std::uintptr_t>(data), memory);
}

TEST(IttEvent, SaysWhatWasLoaded) {
  const MethodLoad load;
  for (const std::int32_t event : {13, 16, 21, 22}) {
    const auto said = read(event, &load);
    ASSERT_TRUE(said);
    EXPECT_EQ(said->kind, IttEvent::Kind::loaded);
    EXPECT_EQ(said->method, 7u);
    EXPECT_EQ(said->code, (AddrRange{0x1000, 0x1020}));
    EXPECT_EQ(said->name, "jitted");
  }
}

std::string line_at(const SourceLines& lines, std::uint64_t offset) {
  const auto found = lines.find(offset);
  return found ? found->file + ":" + std::to_string(found->line) : "none";
}

/// The table in Intel's header, with its meaning there: an entry describes the code before its offset.
// covers: LS06
TEST(IttEvent, SaysWhereLinesEnd) {
  const std::uint32_t table[] = {1, 2, 12, 4, 15, 2, 18, 1, 21, 30};
  MethodLoad load;
  load.line_count = 5;
  load.lines = table;
  const auto said = read(13, &load);
  ASSERT_TRUE(said);
  const std::pair<unsigned, const char*> expected[] = {{0, "a.cc:2"},  {1, "a.cc:4"},  {11, "a.cc:4"},
                                                       {12, "a.cc:2"}, {15, "a.cc:1"}, {18, "a.cc:30"}};
  for (const auto& [offset, line] : expected) EXPECT_EQ(line_at(said->lines, offset), line) << offset;
  load.class_file = "inlined.cc";  // where such an event has the source's file
  EXPECT_EQ(line_at(read(16, &load)->lines, 0), "inlined.cc:2");
  load.line_count = 1'000'000;
  EXPECT_TRUE(read(13, &load)->lines.empty()) << "more than there can be";
  load.line_count = 5;
  load.lines = reinterpret_cast<const std::uint32_t*>(0x10);
  EXPECT_TRUE(read(13, &load)->lines.empty());
  EXPECT_EQ(read(13, &load)->name, "jitted");
}

TEST(IttEvent, SaysWhatIsUnloaded) {
  const std::uint32_t method = 9;
  const auto said = read(14, &method);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->kind, IttEvent::Kind::unloaded);
  EXPECT_EQ(said->method, 9u);
}

TEST(IttEvent, SaysNothingOfOtherEvents) {
  for (const std::int32_t event : {0, 2, 15, -1, 1000}) {
    const auto said = read(event, nullptr);
    ASSERT_TRUE(said);
    EXPECT_EQ(said->kind, IttEvent::Kind::other);
  }
}

TEST(IttEvent, IsRefusedWhereItLies) {
  MethodLoad load;
  load.size = 0;
  EXPECT_EQ(read(13, &load).error().code, ErrorCode::e_range);
  load.size = 0x20;
  load.address = ~std::uint64_t{0} - 8;
  EXPECT_EQ(read(13, &load).error().code, ErrorCode::e_range);
  EXPECT_EQ(read(13, reinterpret_cast<const void*>(0x10)).error().code, ErrorCode::unreadable_memory);
  load.address = 0x1000;
  load.name = reinterpret_cast<const char*>(0x10);
  EXPECT_EQ(read(13, &load)->name, "");
  load.name = nullptr;
  EXPECT_EQ(read(13, &load)->name, "");
  const std::string endless(100'000, 'n');
  load.name = endless.c_str();
  EXPECT_LE(read(13, &load)->name.size(), 4096u + 64u);
  EXPECT_EQ(read(13, &load)->name.find_first_not_of('n'), std::string::npos);
}

// Jitdumps.

std::string text_of(const JitDumpRecord& record) {
  std::string text = std::to_string(record.code.begin) + "+" + std::to_string(record.code.size());
  if (record.kind == JitDumpRecord::Kind::move) return text + " from " + std::to_string(record.from);
  for (const JitDumpRecord::Line& line : record.lines)
    text += " " + std::to_string(line.at) + "=" + std::string(line.file) + ":" + std::to_string(line.line);
  if (record.kind == JitDumpRecord::Kind::lines) return text;
  text += " " + std::string(record.name) + " " + std::to_string(record.bytes.size());
  return record.frames.empty() ? text : text + " frames " + std::to_string(record.frames.size());
}

struct ReadDump {
  std::vector<std::string> records;
  std::size_t passed_by = 0;
  bool is_dump = true;
};

ReadDump read_dump(const Bytes& file, std::size_t size) {
  ReadDump read;
  JitDumpReader reader;
  const std::span<const std::byte> all = file.vector();
  for (std::size_t at = 0; at < all.size(); at += size) {
    const auto piece = all.subspan(at, std::min(size, all.size() - at));
    if (!reader.read(piece, [&](const JitDumpRecord& record) { read.records.push_back(text_of(record)); }))
      read.is_dump = false;
  }
  read.passed_by = reader.passed_by();
  return read;
}

TEST(JitDump, IsReadInPiecesOfAnySize) {
  Bytes file = dump_header(48).u64(0);  // longer than it was
  file.add(dump_record(4, Bytes().u64(6).u64(2).u64(0).fill(6, 1)));
  file.add(dump_loaded("first", 0x1000, Bytes().fill(8, 0x90)));
  file.add(dump_record(
      2, Bytes().u64(0x1000).u64(2).u64(0x1000).u32(7).u32(0).text("a.js").u64(0x1004).u32(8).u32(0).text("\xff")));
  file.add(dump_record(9, Bytes().fill(5, 0)));  // of a later version
  file.add(dump_moved(0x1000, 0x2000, 8)).add(dump_record(3, {})).add(dump_loaded("", 0x3000, Bytes().fill(1, 0xc3)));
  const std::vector<std::string> expected{"4096+8 first 8 frames 6", "4096+0 4096=a.js:7 4100=a.js:8",
                                          "8192+8 from 4096", "12288+1  1"};
  for (std::size_t size = 1; size <= file.size(); ++size) {
    const ReadDump read = read_dump(file, size);
    EXPECT_EQ(read.records, expected) << size;
    EXPECT_EQ(read.passed_by, 0u);
  }
  Bytes half = file;
  half.vector().pop_back();
  EXPECT_EQ(read_dump(half, 100).records.size(), expected.size() - 1) << "a record counts when all of it is there";
}

TEST(SourceLines, HoldUpToTheNextOne) {
  const ToldLine told[] = {{8, 3, "b.js"}, {4, 1, "a.js"}, {20, 9, "a.js"}, {8, 2, "a.js"}};
  const SourceLines lines(told);
  EXPECT_EQ(line_at(lines, 3), "none");
  EXPECT_EQ(line_at(lines, 4), "a.js:1");
  EXPECT_EQ(line_at(lines, 7), "a.js:1");
  EXPECT_EQ(line_at(lines, 8), "a.js:2") << "what was told last";
  EXPECT_EQ(line_at(lines, 1000), "a.js:9");
  EXPECT_EQ(line_at(SourceLines(), 0), "none");
}

TEST(SourceLines, MayBeCountedFromAnElfHeader) {
  const JitDumpRecord::Line behind[] = {{0x1044, 8, "a.js"}, {0x1040, 7, "a.js"}}, within[] = {{0x1048, 8, "a.js"}};
  JitDumpRecord record{.kind = JitDumpRecord::Kind::lines, .code = {0x1000, 0x1000}, .lines = behind};
  EXPECT_EQ(line_at(jitunwind::lines_of(record), 0), "a.js:7");
  EXPECT_EQ(line_at(jitunwind::lines_of(record), 4), "a.js:8");
  record.lines = within;
  EXPECT_EQ(line_at(jitunwind::lines_of(record), 0x47), "none");
  EXPECT_EQ(line_at(jitunwind::lines_of(record), 0x48), "a.js:8");
  EXPECT_TRUE(jitunwind::lines_of({.kind = JitDumpRecord::Kind::lines}).empty());
}

TEST(SourceLines, AreCutWhereTheyAreTooMany) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i <= SourceLines::k_most_files; ++i)
    names.push_back(std::string(100'000, 'n').append(1, 'a'));
  for (std::size_t i = 0; i < names.size(); ++i) names[i].front() = static_cast<char>(i + 1);
  std::vector<ToldLine> told;
  for (const std::string& name : names) told.push_back({told.size(), 1, name});
  EXPECT_EQ(SourceLines(told).find(1000)->file.front(), static_cast<char>(SourceLines::k_most_files));
  EXPECT_EQ(SourceLines(told).find(0)->file.size(), k_longest_told_name);
  told.assign(SourceLines::k_most + 1, {0, 1, "f"});
  told.back().line = 2;
  EXPECT_EQ(SourceLines(told).find(0)->line, 1u);
}

TEST(JitDump, PassesByWhatDoesNotAddUp) {
  Bytes file = dump_header();
  file.add(dump_record(0, Bytes().fill(20, 0)));                                             // too short
  file.add(dump_record(0, Bytes().u64(0).u64(0).u64(0x1000).u64(100).u64(0).text("less")));  // without its code
  file.add(dump_record(4, Bytes().u64(1000).u64(0).u64(0)));
  file.add(dump_record(2, Bytes().u64(0x1000).u64(~std::uint64_t{0}).u64(1)));
  file.add(dump_moved(0x1000, ~std::uint64_t{0} - 4, 100));
  file.add(Bytes().u32(0).u32(3).u64(0));  // shorter than its own prefix
  file.add(Bytes().u32(0).u32(JitDumpReader::k_longest + 1).u64(0).fill(JitDumpReader::k_longest + 1 - 16, 0));
  file.add(dump_loaded("good", 0x1000, Bytes().fill(8, 0x90)));
  for (const std::size_t size : {std::size_t{4096}, file.size()}) {
    const ReadDump read = read_dump(file, size);
    EXPECT_EQ(read.records, std::vector<std::string>{"4096+8 good 8"});
    EXPECT_EQ(read.passed_by, 7u);
  }
}

TEST(JitDump, IsRefusedWhereItIsNone) {
  EXPECT_FALSE(read_dump(Bytes().fill(200, 0), 7).is_dump);
  EXPECT_FALSE(read_dump(dump_header(39), 100).is_dump);
  EXPECT_FALSE(read_dump(dump_header().put(4, 2, 4), 100).is_dump);
  EXPECT_TRUE(read_dump(dump_header().add(dump_loaded("f", 0x1000, {})), 100).records.empty());
}

}  // namespace
}  // namespace jitunwind::test
