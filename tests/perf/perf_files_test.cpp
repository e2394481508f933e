// The map and the dump that are written for perf, read back by this library's readers. perf itself reads them in
// tests/perf/CMakeLists.txt.
#include <gtest/gtest.h>
#include <jitunwind/c.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/listen/told_frame.h"
#include "tests/perf/perf_files.h"
#include "tests/support/jit_frame.h"

extern "C" void __register_frame(void*);
extern "C" void __deregister_frame(void*);

namespace jitunwind::test {
namespace {

Registration registered(Addr start, std::string_view name, std::uint64_t size = sizeof FrameCode::k_bytes) {
  const auto description = FrameCode::described("").build();
  auto one = register_code(*description, {.start = start, .size = size, .name = name});
  EXPECT_TRUE(one);
  return std::move(*one);
}

std::vector<std::string> names_of(const std::vector<MapLine>& lines) {
  std::vector<std::string> names;
  for (const MapLine& line : lines) names.push_back(line.name);
  return names;
}

std::string row_text(Addr at) {
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(at), window);
  FrameRow row;
  const Found found = dyn_row_source().find_row(lookup, row);
  return found && *found ? to_text(row, *host_arch()) : "no row";
}

TEST(PerfFiles, HaveWhatIsRegisteredBeforeAndAfter) {
  const JitFrame before;
  const AttachedPerf perf;
  ASSERT_TRUE(perf.attached()) << perf.attached().error().what;
  EXPECT_EQ(perf.map(), "/tmp/perf-" + std::to_string(::getpid()) + ".map");
  EXPECT_EQ(perf.dump(), perf.folder() + "/jit-" + std::to_string(::getpid()) + ".dump");
  const JitFrame after;
  const auto lines = lines_of_map(perf.map());
  const auto loaded = loaded_by_dump(perf.dump());
  ASSERT_EQ(lines.size(), 2u);
  ASSERT_EQ(loaded.size(), 2u);
  const std::array<const JitFrame*, 2> frames{&before, &after};
  for (std::size_t i = 0; i != 2; ++i) {
    const AddrRange code{frames[i]->start(), frames[i]->start() + frames[i]->size()};
    EXPECT_EQ(lines[i].code, code);
    EXPECT_EQ(lines[i].name, "jit_frame");
    EXPECT_EQ(loaded[i].code, code);
    EXPECT_EQ(loaded[i].name, "jit_frame");
    ASSERT_EQ(loaded[i].bytes.size(), sizeof FrameCode::k_bytes);
    EXPECT_EQ(std::memcmp(loaded[i].bytes.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes), 0);
    for (Addr at = code.begin; at != code.end; ++at) {
      FrameRow row;
      const Found found = loaded[i].frames.find_row(code, at, *host_arch(), row);
      ASSERT_TRUE(found && *found);
      EXPECT_EQ(to_text(row, *host_arch()), row_text(at));
    }
  }
  struct stat status;
  for (const std::string& path : {perf.map(), perf.dump()}) {
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
}

TEST(PerfFiles, NamesAreOneLine) {
  const AttachedPerf perf;
  const std::vector<Registration> kept = [] {
    std::vector<Registration> all;
    const std::array<const char*, 4> names{"two\nlines", "a\x1b[31m b", "", "über"};
    for (Addr i = 0; i != names.size(); ++i) all.push_back(registered(0x30000000 + 64 * i, names[i]));
    return all;
  }();
  EXPECT_EQ(names_of(lines_of_map(perf.map())), (std::vector<std::string>{"two?lines", "a?[31m b", "[jit]", "über"}));
  const PerfStatistics now = perf_statistics();
  EXPECT_EQ(now.procedures, 4u);
  EXPECT_EQ(now.refused, 4u) << "there is no memory, whose bytes the dump would have";
  EXPECT_EQ(now.latest_refusal.code, ErrorCode::unreadable_memory);
  EXPECT_TRUE(loaded_by_dump(perf.dump()).empty());
}

TEST(PerfFiles, LinesComeInFrontOfTheirCode) {
  JitFrame frame;
  (void)frame.registration().cancel();
  const AttachedPerf perf;
  const std::array<ToldLine, 2> lines{{{0, 10, "a.src"}, {4, 12, "b.src"}}};
  ASSERT_TRUE(tell_perf_lines({frame.start(), frame.start() + frame.size()}, lines));
  frame.registration() = registered(frame.start(), "lined");
  const auto loaded = loaded_by_dump(perf.dump());
  ASSERT_EQ(loaded.size(), 1u);
  const auto line_at = [&](std::uint64_t offset) {
    const auto line = loaded[0].lines.find(offset);
    return line ? line->file + ":" + std::to_string(line->line) : "none";
  };
  EXPECT_EQ(line_at(0), "a.src:10");
  EXPECT_EQ(line_at(3), "a.src:10");
  EXPECT_EQ(line_at(frame.size() - 1), "b.src:12");
  (void)frame.registration().cancel();
  const auto* const code = reinterpret_cast<const void*>(frame.start());
  const std::array<ju_source_line, 2> of_c{{{0, "c.src", 20}, {4, nullptr, 22}}};
  ASSERT_EQ(ju_tell_perf_lines(code, frame.size(), of_c.data(), of_c.size(), nullptr), JU_OK);
  frame.registration() = registered(frame.start(), "lined in C");
  const auto by_c = loaded_by_dump(perf.dump());
  ASSERT_EQ(by_c.size(), 2u);
  EXPECT_EQ(by_c[1].lines.find(3)->file, "c.src");
  EXPECT_EQ(by_c[1].lines.find(4)->line, 22u);
  EXPECT_EQ(ju_tell_perf_lines(&of_c, 1, nullptr, 1, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_tell_perf_lines(&of_c, 1, of_c.data(), SourceLines::k_most + 1, nullptr), JU_INVALID_ARGUMENT);
  EXPECT_TRUE(tell_perf_lines({0, 1}, {}));
  const std::vector<ToldLine> many(SourceLines::k_most + 1);
  EXPECT_EQ(tell_perf_lines({0, 1}, many).error().code, ErrorCode::invalid_argument);
}

TEST(PerfFiles, DumpEndsWhenPerfIsDetached) {
  const JitFrame frame;
  const AttachedPerf perf;
  ASSERT_TRUE(attach_perf()) << "which does nothing";
  ASSERT_TRUE(detach_perf());
  ASSERT_TRUE(detach_perf());
  const std::string dump = content_of(perf.dump());
  ASSERT_GT(dump.size(), 16u);
  const std::array<unsigned char, 8> close{3, 0, 0, 0, 16, 0, 0, 0};
  EXPECT_EQ(std::memcmp(dump.data() + dump.size() - 16, close.data(), close.size()), 0);
  const auto before = content_of(perf.map());
  const JitFrame unseen;
  EXPECT_EQ(content_of(perf.map()), before);
  EXPECT_FALSE(perf_statistics().attached);
}

TEST(PerfFiles, FullMapIsWrittenAnewAndFullDumpEnds) {
  constexpr std::uint64_t k_most = 4096;
  const JitFrame stays;
  const AttachedPerf perf(k_most);
  testing::internal::CaptureStderr();
  for (unsigned i = 0; i != 1000; ++i) {
    const JitFrame passes;
    const auto lines = lines_of_map(perf.map());
    ASSERT_LE(content_of(perf.map()).size(), k_most);
    ASSERT_FALSE(lines.empty());
    const auto names = [&](const JitFrame& frame) {
      return std::ranges::any_of(lines, [&](const MapLine& line) { return line.code.begin == frame.start(); });
    };
    ASSERT_TRUE(names(stays) && names(passes)) << i;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "jitunwind: perf's dump " + perf.dump() + " ends: the file would be larger than it may be\n");
  EXPECT_GT(loaded_by_dump(perf.dump()).size(), 5u);
  EXPECT_LE(content_of(perf.dump()).size(), k_most);
  EXPECT_EQ(perf_statistics().map, perf.map());
  EXPECT_EQ(perf_statistics().dump, "");
}

TEST(PerfFiles, DumpWithoutRoomForItsHeadIsNotLeft) {
  testing::internal::CaptureStderr();
  const AttachedPerf perf(39);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("perf's dump"), std::string::npos);
  EXPECT_EQ(perf.dump(), "");
  EXPECT_TRUE(std::filesystem::is_empty(perf.folder()));
}

TEST(PerfFiles, MapOfMoreThanItMayHaveEnds) {
  const AttachedPerf perf(4096);
  testing::internal::CaptureStderr();
  std::vector<Registration> kept;
  for (Addr i = 0; i != 200; ++i) kept.push_back(registered(0x30000000 + 64 * i, "one_of_many"));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_NE(said.find("perf's map"), said.npos) << said;
  EXPECT_EQ(perf_statistics().map, "");
  EXPECT_GT(lines_of_map(perf.map()).size(), 20u);
}

/// The kernel would end the program by SIGXFSZ.
TEST(PerfFiles, LimitOfTheProcessEndsTheFilesAlone) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const AttachedPerf perf;
  rlimit small = before;
  small.rlim_cur = 100;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  testing::internal::CaptureStderr();
  std::vector<Registration> kept;
  for (Addr i = 0; i != 20; ++i) kept.push_back(registered(0x30000000 + 64 * i, "one_of_many"));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("perf's map"), std::string::npos);
  EXPECT_GE(lines_of_map(perf.map()).size(), 1u) << "whole lines";
  EXPECT_LE(content_of(perf.map()).size(), 100u);
}

/// The listening library reads maps and dumps of its own process, of which these tell what is registered already.
TEST(PerfFiles, AreNotHeard) {
  const JitFrame before;
  const std::string row = row_text(before.start() + 1);
  listen(static_cast<std::uint32_t>(Dialect::maps));
  const AttachedPerf perf;
  const JitFrame after;
  const auto names_heard = listen_status().names;
  for (int i = 0; i != 150; ++i) ::usleep(10'000);  // dumps are looked for once a second
  EXPECT_EQ(listen_status().names, names_heard);
  EXPECT_EQ(row_text(before.start() + 1), row);
  EXPECT_EQ(row_text(after.start() + 1), row);
  EXPECT_EQ(lines_of_map(perf.map()).size(), 2u);
  // Code that is heard is written, once. It is mapped: names of other code are forgotten any moment, and told anew by
  // the map.
  const ExecutableCopy code(calling_frame());
  const auto begin = reinterpret_cast<std::uintptr_t>(code.begin());
  const AddrRange heard{begin, begin + code.size()};
  say_name(Dialect::itt, heard, "heard");
  listen(k_all_dialects);
  say_name(Dialect::itt, heard, "heard");
  for (int i = 0; i != 10; ++i) ::usleep(10'000);
  const auto lines = lines_of_map(perf.map());
  EXPECT_EQ(std::ranges::count(names_of(lines), "heard"), 1);
  say_gone(Dialect::itt, heard);
  listen(0);
}

/// The thread would hear the name of code that is gone from perf's map, which would then have one more line.
TEST(PerfFiles, AreNotHeardOfCodeThatIsGone) {
  const ExecutableCopy code(calling_frame());
  const auto begin = reinterpret_cast<std::uintptr_t>(code.begin());
  const AttachedPerf perf;
  { const Registration gone = registered(begin + 0x100, "gone"); }
  std::ofstream(perf.map(), std::ios::app) << std::hex << begin << " 8 of an engine\n";
  listen(static_cast<std::uint32_t>(Dialect::maps));
  for (int i = 0; i != 1000 && listen_status().names == 0; ++i) ::usleep(10'000);
  for (int i = 0; i != 5; ++i) ::usleep(10'000);
  EXPECT_EQ(names_of(lines_of_map(perf.map())), (std::vector<std::string>{"gone", "of an engine", "of an engine"}));
  EXPECT_EQ(listen_status().names, 1u);
  say_gone(Dialect::maps, {begin, begin + 8});
  listen(0);
}

/// Frames that an engine announces are written, and what is written of them is no further announcement.
TEST(PerfFiles, HaveWhatIsHeardOnce) {
  const ExecutableCopy code(calling_frame());
  EhFrame frames;
  put_calling_frame(frames, code);
  listen(static_cast<std::uint32_t>(Dialect::maps));
  const AttachedPerf perf;
  void* const section = reinterpret_cast<void*>(static_cast<std::uintptr_t>(frames.placed().begin));
  __register_frame(section);
  for (int i = 0; i != 150; ++i) ::usleep(10'000);
  EXPECT_EQ(lines_of_map(perf.map()).size(), 1u);
  const auto loaded = loaded_by_dump(perf.dump());
  EXPECT_EQ(loaded.size(), 1u);
  EXPECT_EQ(listen_status().names, 0u);
  const auto begin = reinterpret_cast<std::uintptr_t>(code.begin());
  say_name(Dialect::maps, {begin, begin + code.size()}, "named");
  for (int i = 0; i != 10; ++i) ::usleep(10'000);
  EXPECT_EQ(names_of(lines_of_map(perf.map())), (std::vector<std::string>{"[jit]", "named"}));
  EXPECT_EQ(loaded_by_dump(perf.dump()).size(), 2u);
  __deregister_frame(section);
  listen(0);
}

}  // namespace
}  // namespace jitunwind::test
