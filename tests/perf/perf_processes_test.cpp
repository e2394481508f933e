// Files that are in the way, that vanish, or that a program closes; children.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>

#include "tests/perf/perf_files.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

std::string own_map() { return "/tmp/perf-" + std::to_string(::getpid()) + ".map"; }

/// Removes a map or a folder of that name, which an earlier process with this number may have left.
void remove_own_map() {
  if (::unlink(own_map().c_str()) != 0) ::rmdir(own_map().c_str());
}

/// Runs in a child; returns its exit status.
int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  remove_written_for_perf(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PerfProcesses, ForkedChildWritesNothingUnasked) {
  const JitFrame before;
  const AttachedPerf perf;
  const std::string map = content_of(perf.map()), dump = content_of(perf.dump());
  EXPECT_EQ(in_child([&] {
              const JitFrame in_child;
              if (perf_statistics().attached || ::access(own_map().c_str(), F_OK) == 0) return 1;
              if (!attach_perf({.folder = perf.folder()}) || !attach_perf()) return 2;
              const JitFrame asked_for;
              const PerfStatistics now = perf_statistics();
              if (now.map != own_map() || now.dump == perf.dump()) return 3;
              if (lines_of_map(now.map).size() != 3 || loaded_by_dump(now.dump).size() != 3) return 4;
              return detach_perf() ? 0 : 5;
            }),
            0);
  EXPECT_EQ(content_of(perf.map()), map);
  EXPECT_EQ(content_of(perf.dump()), dump);
  const JitFrame after;
  EXPECT_EQ(lines_of_map(perf.map()).size(), 2u) << "the parent goes on";
}

/// A daemon closes all files, and opens its own under their numbers.
TEST(PerfProcesses, ProgramMayCloseAllFiles) {
  EXPECT_EQ(in_child([] {
              const AttachedPerf perf;
              const std::string own = perf.folder() + "/own";
              ::close_range(3, ~0u, 0);
              std::array<int, 20> numbers{};
              for (int& number : numbers) number = ::open(own.c_str(), O_RDWR | O_CREAT, 0600);
              const JitFrame frame;
              if (!content_of(own).empty()) return 1;
              for (const int number : numbers)
                if (::fcntl(number, F_GETFD) < 0) return 2;
              return lines_of_map(perf.map()).size() == 1 && loaded_by_dump(perf.dump()).size() == 1 ? 0 : 3;
            }),
            0);
}

void expect_end_of_removed_files(const std::function<void()>& close_files) {
  const AttachedPerf perf;
  ::unlink(perf.dump().c_str());
  ::unlink(perf.map().c_str());
  { std::ofstream(perf.map()) << "mine\n"; }
  close_files();
  testing::internal::CaptureStderr();
  const JitFrame frame, another;
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("perf's map"), said.npos) << said;
  EXPECT_NE(said.find("perf's dump"), said.npos) << said;
  EXPECT_EQ(content_of(perf.map()), "mine\n");
  EXPECT_NE(::access(perf.dump().c_str(), F_OK), 0);
}

TEST(PerfProcesses, FileThatWasRemovedOrReplacedEnds) {
  expect_end_of_removed_files([] {});
  expect_end_of_removed_files([] { ::close_range(3, ~0u, 0); });
}

TEST(PerfProcesses, LinksAreNotFollowedAndOldFilesAreReplaced) {
  const TemporaryFolder folder;
  const std::string target = folder / "target", dump = folder / ("jit-" + std::to_string(::getpid()) + ".dump");
  { std::ofstream(target) << "mine\n"; }
  remove_own_map();
  ASSERT_EQ(::symlink(target.c_str(), own_map().c_str()), 0);
  { std::ofstream(dump) << "old"; }
  const std::array<timespec, 2> long_ago{{{1000, 0}, {1000, 0}}};
  ASSERT_EQ(::utimensat(AT_FDCWD, dump.c_str(), long_ago.data(), 0), 0);
  testing::internal::CaptureStderr();
  ASSERT_TRUE(attach_perf({.folder = folder.path()}));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("perf's map"), std::string::npos);
  const JitFrame frame;
  EXPECT_EQ(loaded_by_dump(dump).size(), 1u);
  EXPECT_EQ(content_of(target), "mine\n");
  ASSERT_TRUE(detach_perf());
  remove_own_map();
  // A map that an engine of this process has begun is continued; its dump is its own.
  { std::ofstream(own_map()) << "1000 10 of_an_engine\n"; }
  testing::internal::CaptureStderr();
  ASSERT_TRUE(attach_perf({.folder = folder.path()}));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("this process has begun it"), std::string::npos);
  const auto lines = lines_of_map(own_map());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].name, "of_an_engine");
  ASSERT_TRUE(detach_perf());
  remove_written_for_perf(::getpid());
}

TEST(PerfProcesses, NothingIsAttachedWithoutAFile) {
  remove_own_map();
  ASSERT_EQ(::mkdir(own_map().c_str(), 0700), 0);
  testing::internal::CaptureStderr();
  const Status attached = attach_perf({.folder = "/nowhere"});
  EXPECT_FALSE(attached);
  EXPECT_EQ(attached.error().code, ErrorCode::io);
  EXPECT_FALSE(perf_statistics().attached);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/nowhere/jit-"), std::string::npos);
  remove_own_map();
}

}  // namespace
}  // namespace jitunwind::test
