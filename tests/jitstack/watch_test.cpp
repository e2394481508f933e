// jitstack --watch: the stacks of a process during some seconds.
#include <filesystem>
#include <fstream>

#include "tests/jitstack/jitstack_runs.h"

namespace jitunwind::test {
namespace {

std::uint64_t stacks_in(const std::string& folded, const std::string& pattern) {
  std::uint64_t count = 0;
  const Pattern line_of(pattern + " (\\d+)");
  Groups found;
  for (const std::string& line : lines_of(folded))
    if (matches(line, found, line_of)) count += std::stoull(found[1]);
  return count;
}

TEST(JitstackWatch, WritesFoldedStacks) {
  const TemporaryFolder folder;
  const TargetProgram program(TARGET_PROGRAM);
  const std::string output = folder / "seen";
  const Printed printed = jitstack("--watch 0.5 --frequency 10 --output '" + output + "' " + id_of(program));
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_EQ(printed.err, "");
  const auto lines = lines_of(printed.out);
  ASSERT_EQ(lines.size(), 2u) << printed.out;
  Groups said;
  ASSERT_TRUE(
      matches(lines[0], said,
              Pattern(R"((\d+) stacks in \d\.\d s, (\d+) looks, 0 stacks cut short, whether threads run or wait)")));
  const std::uint64_t stacks = std::stoull(said[1]), looks = std::stoull(said[2]);
  EXPECT_EQ(stacks, 3 * looks);
  EXPECT_GE(looks, 1u);
  EXPECT_LE(looks, 5u);
  EXPECT_EQ(lines[1], output + ".folded");
  const std::string folded = text_of_file(lines[1]);
  EXPECT_EQ(stacks_in(folded, R"(target_program;_start;.*main;jit_frame_\[j\];middle;jit_frame_\[j\];stand_still;.*)"),
            looks);
  for (const char* worker : {"worker 0", "worker 1"})
    EXPECT_EQ(stacks_in(folded, worker + std::string(R"(;.*;jit_frame_\[j\];middle;jit_frame_\[j\];stand_still;.*)")),
              looks);
}

TEST(JitstackWatch, OfOneThreadAndOfStacksThatAreCutShort) {
  const TemporaryFolder folder;
  const std::string output = " --output '" + (folder / "seen") + "' ";
  const TargetProgram program(TARGET_PROGRAM);
  EXPECT_EQ(jitstack("--watch 0.1 --hold --threads " + id_of(program) + output + id_of(program)).status, 0);
  EXPECT_EQ(stacks_in(text_of_file(folder / "seen.folded"), "worker.*"), 0u);
  EXPECT_GE(stacks_in(text_of_file(folder / "seen.folded"), "target_program;.*"), 1u);
  EXPECT_EQ(jitstack("--watch 0.1 --threads 1" + output + id_of(program)).status, 3);

  const TargetProgram hostile(HOSTILE_PROGRAM, {});
  EXPECT_EQ(jitstack("--watch 0.1" + output + id_of(hostile)).status, 1);
  const std::string folded = text_of_file(folder / "seen.folded");
  EXPECT_GE(stacks_in(folded, R"(\\x1b\[31m<red>\\x0a;\[cut short\];.*;stand_in_unknown_code;.*)"), 1u) << folded;
}

/// The samples until then are written.
TEST(JitstackWatch, EndsWithASignalOrWithTheProcess) {
  for (const bool by_signal : {true, false}) {
    const TemporaryFolder folder;
    TargetProgram program(TARGET_PROGRAM);
    const std::string output = folder / "seen";
    const pid_t watcher = ::fork();
    if (watcher == 0) {
      const std::string process = id_of(program);
      ::execl(JITSTACK, JITSTACK, "--watch", "1000", "--output", output.c_str(), process.c_str(), nullptr);
      ::_exit(127);
    }
    ::usleep(700'000);
    by_signal ? void(::kill(watcher, SIGINT)) : void(program.end());
    int status = -1;
    ASSERT_EQ(::waitpid(watcher, &status, 0), watcher);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_GE(stacks_in(text_of_file(output + ".folded"), "target_program;.*"), 1u);
  }
}

/// Others may have put a link there, to a file of this user's.
TEST(JitstackWatch, WritesThroughNoLink) {
  const TemporaryFolder folder;
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const std::string output = folder / "seen", mine = folder / "mine";
  std::ofstream(mine) << "mine";
  for (const bool is_hard : {false, true}) {
    std::filesystem::remove(output + ".folded");
    is_hard ? std::filesystem::create_hard_link(mine, output + ".folded")
            : std::filesystem::create_symlink(mine, output + ".folded");
    EXPECT_EQ(jitstack("--watch 0.1 --output '" + output + "' " + id_of(program)).status, 0);
    EXPECT_EQ(text_of_file(mine), "mine");
    EXPECT_GE(stacks_in(text_of_file(output + ".folded"), "target_program;.*"), 1u);
  }
  EXPECT_EQ(jitstack("--watch 0.1 --output '" + output + "' " + id_of(program)).status, 0) << "again";
}

/// The former file stays, and no part of a new one is left. 0 blocks are the limit of the process, as if the disk were
/// full.
TEST(JitstackWatch, WritesAWholeFileOrNone) {
  const TemporaryFolder folder;
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  std::ofstream(folder / "seen.folded") << "before";
  const Ended ended = run("sh -c \"trap '' XFSZ; ulimit -f 0; exec " JITSTACK " --watch 0.1 --output " +
                          folder / "seen" + " " + id_of(program) + "\"");
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.text.find("cannot write"), std::string::npos) << ended.text;
  EXPECT_EQ(text_of_file(folder / "seen.folded"), "before");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(JitstackWatch, SaysWhatIsWrong) {
  const TargetProgram program(TARGET_PROGRAM, {"0"});
  const Printed nowhere = jitstack("--watch 0.1 --output /nowhere/at/all " + id_of(program));
  EXPECT_EQ(nowhere.status, 4);
  EXPECT_EQ(nowhere.err, "jitstack: cannot write '/nowhere/at/all.folded': No such file or directory\n");
  EXPECT_EQ(jitstack("--watch 0.1 4194304").status, 3);
  for (const char* arguments :
       {"--watch 1 1 2", "--watch 0 1", "--watch -1 1", "--watch x 1", "--frequency 5 1", "--output x 1",
        "--watch 1 --json 1", "--watch 1 --core x", "--watch 1 --frequency 0 1"})
    EXPECT_EQ(jitstack(arguments).status, 2) << arguments;
}

}  // namespace
}  // namespace jitunwind::test
