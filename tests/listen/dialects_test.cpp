// Parsers of dialects, on what engines write and on what they should not.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/itt_event.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/unwind_core/memory/local.h"

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

/// The beginning of iJIT_Method_Load.
struct MethodLoad {
  std::uint32_t method = 7;
  const char* name = "jitted";
  std::uint64_t address = 0x1000;
  std::uint32_t size = 0x20;
  std::uint32_t line_count = 0;
};

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
  const std::string endless(100'000, 'n');
  load.name = endless.c_str();
  EXPECT_LE(read(13, &load)->name.size(), 4096u + 64u);
  EXPECT_EQ(read(13, &load)->name.find_first_not_of('n'), std::string::npos);
}

}  // namespace
}  // namespace jitunwind::test
