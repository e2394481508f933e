// The content of a segment becomes a new file, while the code runs and readers look.
#include <elf.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/support/command.h"
#include "tests/support/emulated.h"

namespace jitunwind::test {
namespace {

using namespace std::chrono_literals;

const Callee k_identity = [](void* argument) { return argument; };

/// The file that the dynamic linker, and so every tool, takes the code from.
std::string file_of(Addr start) {
  Dl_info info{};
  return ::dladdr(as_pointer(start), &info) != 0 ? info.dli_fname : "";
}
ino_t inode_of(Addr start) {
  struct stat status {};
  return ::stat(file_of(start).c_str(), &status) == 0 ? status.st_ino : 0;
}
std::string bytes_of(Addr start) {
  std::ostringstream bytes;
  bytes << std::ifstream(file_of(start), std::ios::binary).rdbuf();
  return bytes.str();
}
/// The build-id as readelf prints it; "": the file has none.
std::string build_id_of(Addr start) {
  const std::string notes = run("readelf --notes " + file_of(start)).text;
  const std::size_t at = notes.find("Build ID: ");
  return at == notes.npos ? "" : notes.substr(at, notes.find('\n', at) - at);
}
void expect_seen(Addr start, const char* name) {
  EXPECT_STREQ(symbol_at(start + 1), name);
  EXPECT_EQ(LibgccSearch()(start + 1), start);
  int any = 0;
  EXPECT_EQ(call(start, k_identity, &any), &any);
  EXPECT_THROW(call(
                   start, [](void*) -> void* { throw std::runtime_error("from below"); }, nullptr),
               std::runtime_error);
}
void expect_gone(Addr start) {
  EXPECT_EQ(symbol_at(start + 1), nullptr);
  EXPECT_EQ(LibgccSearch()(start + 1), 0u);
}

TEST(Seals, SealedFilesHaveABuildIdAndOtherOnesNone) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first"), second = commit_frame(segments, "second");
  EXPECT_EQ(build_id_of(first), "");
  const ino_t before = inode_of(first);
  ASSERT_TRUE(segments.seal());
  EXPECT_EQ(segments.status().sealed, 1u);
  EXPECT_NE(inode_of(first), before);
  // No other file has the inode by which the dynamic linker knows the library.
  struct stat original {};
  ASSERT_EQ(::stat((file_of(first) + ".first").c_str(), &original), 0);
  EXPECT_EQ(original.st_ino, before);
  const std::string id = build_id_of(first);
  EXPECT_NE(id, "");
  expect_seen(first, "first");
  expect_seen(second, "second");
  ASSERT_TRUE(segments.seal());
  EXPECT_EQ(build_id_of(first), id);  // nothing has changed

  const Addr third = commit_frame(segments, "third");
  EXPECT_EQ(third, second + (second - first));
  EXPECT_EQ(segments.status().sealed, 0u);
  EXPECT_EQ(build_id_of(first), "");
  for (const auto& [start, name] : {std::pair(first, "first"), {second, "second"}, {third, "third"}})
    expect_seen(start, name);
  ASSERT_TRUE(segments.seal());
  EXPECT_NE(build_id_of(first), "");
  EXPECT_NE(build_id_of(first), id);
  // Somebody may have opened that file when it was the only one.
  const std::string of_the_first = text_of_file(file_of(first) + ".first");
  EXPECT_TRUE(of_the_first.starts_with(ELFMAG) && of_the_first.find("second") != of_the_first.npos);
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

/// Readers in the process miss what has gone. Those of the file may have sampled it.
TEST(Seals, SealedFilesStayWhenFunctionsGo) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first"), second = commit_frame(segments, "second");
  ASSERT_TRUE(segments.seal());
  const std::string before = bytes_of(first);
  EXPECT_NE(before.find("second"), before.npos);
  ASSERT_TRUE(segments.release(second));
  expect_gone(second);
  expect_seen(first, "first");
  EXPECT_EQ(bytes_of(first), before);
  EXPECT_EQ(segments.status().sealed, 1u);
  EXPECT_EQ(commit_frame(segments, "third"), second);  // in a new file
  EXPECT_EQ(run("readelf --wide --dyn-syms " + file_of(first)).text.find("second"), before.npos);
  EXPECT_EQ(segments.status().sealed, 0u);
  expect_seen(first, "first");
  expect_seen(second, "third");
}

/// Waits for the thread that seals.
std::size_t sealed_soon(const CodeSegments& segments, std::size_t count) {
  for (int i = 0; i < 500 && segments.status().sealed < count; ++i) std::this_thread::sleep_for(10ms);
  return segments.status().sealed;
}

TEST(Seals, FullSegmentsAreSealedUntilAQuarterIsEmpty) {
  CodeSegments segments({.text_bytes = 65536, .functions = 16});
  std::vector<Addr> starts;
  for (int i = 0; i < 33; ++i) starts.push_back(commit_frame(segments, "function_" + std::to_string(i)));
  EXPECT_EQ(sealed_soon(segments, 2), 2u);
  EXPECT_NE(build_id_of(starts[0]), "");
  EXPECT_NE(build_id_of(starts[16]), "");
  EXPECT_EQ(build_id_of(starts[32]), "");
  for (const std::size_t i : {3u, 7u, 5u}) ASSERT_TRUE(segments.release(starts[i]));
  EXPECT_GT(commit_frame(segments, "elsewhere"), starts[32]);
  EXPECT_EQ(segments.status().sealed, 2u);
  ASSERT_TRUE(segments.release(starts[1]));
  EXPECT_EQ(commit_frame(segments, "again"), starts[1]);  // by address, as they are found
  EXPECT_EQ(segments.status().sealed, 1u);
  for (const std::size_t i : {3u, 5u}) EXPECT_EQ(commit_frame(segments, "again"), starts[i]);
  EXPECT_EQ(segments.status().sealed, 1u);
  EXPECT_EQ(commit_frame(segments, "again"), starts[7]);
  EXPECT_EQ(sealed_soon(segments, 2), 2u);
  for (std::size_t i = 0; i < starts.size(); ++i)
    expect_seen(starts[i], i == 1 || i == 3 || i == 5 || i == 7 ? "again" : ("function_" + std::to_string(i)).c_str());
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
}

TEST(Seals, GrowingSegmentsAreRenewedAfterAWhile) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first");
  const ino_t before = inode_of(first);
  commit_frame(segments, "second");
  EXPECT_EQ(inode_of(first), before);
  std::this_thread::sleep_for(120ms);
  const auto open = segments.allocate(16);
  const Addr third = commit_frame(segments, "third");
  EXPECT_EQ(inode_of(first), before);  // somebody may write to the open room
  ASSERT_TRUE(segments.release(open->start));
  const Addr fourth = commit_frame(segments, "fourth");
  EXPECT_NE(inode_of(first), before);
  EXPECT_EQ(build_id_of(first), "");
  expect_seen(first, "first");
  expect_seen(third, "third");
  expect_seen(fourth, "fourth");
}

/// Writing to memory changes no file's times; the words in its first 4 KiB and the time tell that it has changed.
TEST(Seals, FilesTellThatTheyHaveChanged) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first");
  const auto time = std::filesystem::last_write_time(file_of(first));
  const std::string before = bytes_of(first).substr(0, 4096);
  commit_frame(segments, "second");
  EXPECT_NE(bytes_of(first).substr(0, 4096), before);
  std::this_thread::sleep_for(30ms);
  commit_frame(segments, "third");
  EXPECT_GT(std::filesystem::last_write_time(file_of(first)), time);
}

TEST(Seals, OpenRoomsAndCodeThatChangesKeepTheirFiles) {
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first");
  const auto open = segments.allocate(sizeof FrameCode::k_bytes);
  EXPECT_TRUE(segments.seal());
  EXPECT_EQ(segments.status().sealed, 0u);
  std::memcpy(open->writable.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
  const Description description = frame_description("open");
  ASSERT_TRUE(segments.commit(description, {.start = open->start, .size = sizeof FrameCode::k_bytes}));
  ASSERT_TRUE(segments.seal());
  EXPECT_EQ(segments.status().sealed, 1u);
  expect_seen(first, "first");
  expect_seen(open->start, "open");

  CodeSegments changing({.changes_code = true});
  const Addr start = commit_frame(changing, "changing");
  const ino_t before = inode_of(start);
  EXPECT_TRUE(changing.seal());
  std::this_thread::sleep_for(120ms);
  commit_frame(changing, "other");
  EXPECT_EQ(inode_of(start), before);
}

/// The program, or a debugger with its breakpoints, wrote to the pages in which the code runs. They stay.
TEST(Seals, WhatWasWrittenToTheImageStays) {
  CodeSegments segments;
  const Addr start = commit_frame(segments, "written");
  const auto room = segments.allocate(16);
  ASSERT_TRUE(room);
  void* const page = as_pointer(start & ~Addr{65535});
  ASSERT_EQ(::mprotect(page, 65536, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  auto* const byte = static_cast<unsigned char*>(as_pointer(start + sizeof FrameCode::k_bytes));
  *byte = 0x90;
  ASSERT_TRUE(segments.release(room->start));
  const Status sealed = segments.seal();
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, ErrorCode::io);
  EXPECT_EQ(*byte, 0x90);
  EXPECT_EQ(segments.status().sealed, 0u);
  expect_seen(start, "written");
}

/// Threads run the code, throw through it, name it and walk it, while its file is renewed all the time.
TEST(Seals, NobodyNotices) {
  CodeSegments segments({.text_bytes = 65536, .functions = 64});
  const std::array<Addr, 2> starts{commit_frame(segments, "outer"), commit_frame(segments, "inner")};
  std::atomic<int> wrong{0};
  std::atomic<bool> ends{false};
  const auto look = [&] {
    const LibgccSearch search;
    while (!ends) {
      for (std::size_t i = 0; i < 2; ++i) {
        const char* const name = symbol_at(starts[i] + 1);
        wrong += name == nullptr || std::strcmp(name, i == 0 ? "outer" : "inner") != 0;
        wrong += search(starts[i] + 1) != starts[i];
        wrong += call(starts[i], k_identity, &ends) != &ends;
        try {
          call(
              starts[i], [](void*) -> void* { throw 1; }, nullptr);
          ++wrong;
        } catch (int) {
        }
      }
    }
  };
  std::thread first(look), second(look);
  for (std::size_t i = 0; i < repetitions(300); ++i) {
    ASSERT_TRUE(segments.seal());
    const Addr other = commit_frame(segments, "other");  // in a new file
    if (i % 2 == 0) {
      ASSERT_TRUE(segments.seal());
    }
    ASSERT_TRUE(segments.release(other));
  }
  ends = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(segments.status().refused, 0u) << segments.status().latest_refusal.text();
  EXPECT_LE(std::distance(std::filesystem::directory_iterator(segments.status().folder), {}), 4);
}

}  // namespace
}  // namespace jitunwind::test
