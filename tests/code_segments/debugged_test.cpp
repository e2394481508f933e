// Code segments of a program that debuggers look at: what is in their list, and which rooms serve again.
#include <gtest/gtest.h>

#include <vector>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "tests/code_segments/committed.h"
#include "tests/code_segments/symbols_of.h"
#include "tests/debuggers/tracer.h"

namespace jitunwind::test {
namespace {

using debuggers_test::traced_by;

/// A debugger that comes later reads the file.
TEST(DebuggedSegments, TheListHasNoneOfTheFiles) {
  ASSERT_TRUE(attach_gdb());
  CodeSegments segments;
  const Addr first = commit_frame(segments, "first");
  EXPECT_EQ(gdb_statistics().procedures, 0u);
  alignas(16) static std::array<std::byte, 64> bytes;
  auto registered = register_code(frame_description("elsewhere"),
                                  {.start = reinterpret_cast<std::uintptr_t>(bytes.data()), .size = 40});
  ASSERT_TRUE(registered);
  EXPECT_EQ(gdb_statistics().procedures, 1u);
  ASSERT_TRUE(segments.release(first));
  ASSERT_TRUE(detach_gdb());
  commit_frame(segments, "again");
  ASSERT_TRUE(attach_gdb());  // tells of everything that is registered
  EXPECT_EQ(gdb_statistics().procedures, 1u);
  ASSERT_TRUE(detach_gdb());
}

/// A debugger that is here may have read the file before.
TEST(DebuggedSegments, TheListHasAllForADebuggerThatIsHere) {
  CodeSegments segments;
  commit_frame(segments, "before");
  for (const char* const name : {"gdb", "lldb-server"}) {
    traced_by(name, [&] {
      ASSERT_TRUE(attach_gdb());
      EXPECT_EQ(gdb_statistics().procedures, 1u);
      CodeSegments own;
      const Addr first = commit_frame(own, "first");
      ASSERT_TRUE(flush_gdb());
      EXPECT_EQ(gdb_statistics().procedures, 2u);
      ASSERT_TRUE(own.release(first));
      EXPECT_EQ(gdb_statistics().procedures, 1u);
      ASSERT_TRUE(detach_gdb());
    });
  }
}

/// The debugger goes on to use the names that it has read.
TEST(DebuggedSegments, RoomsServeAgainWithoutADebugger) {
  const auto is_taken_again = [] {
    CodeSegments segments;
    const Addr first = commit_frame(segments, "first");
    EXPECT_TRUE(segments.release(first));
    return commit_frame(segments, "second") == first;
  };
  EXPECT_TRUE(is_taken_again());
  traced_by("gdb", [&] { EXPECT_FALSE(is_taken_again()); });
}

/// Code that no file has is in the list at all times.
TEST(DebuggedSegments, TheListHasWhatIsNotPublished) {
  ASSERT_TRUE(attach_gdb());
  CodeSegments segments;
  const auto room = segments.allocate(sizeof FrameCode::k_bytes);
  ASSERT_TRUE(room);
  std::memcpy(room->writable.data(), FrameCode::k_bytes, sizeof FrameCode::k_bytes);
  host::Marks marks;  // no name, and so no symbol
  ASSERT_TRUE(segments.commit(marks, {.start = room->start, .size = sizeof FrameCode::k_bytes}));
  EXPECT_EQ(segments.status().published, 0u);
  EXPECT_EQ(gdb_statistics().procedures, 1u);
  ASSERT_TRUE(detach_gdb());
}

}  // namespace
}  // namespace jitunwind::test
