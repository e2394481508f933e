// The system calls made while a process is stopped to be copied. strace reports them, from the request that stops the
// first thread to the one that lets the first thread go.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

using Calls = std::vector<std::string>;

Calls calls_while_it_stands(pid_t process) {
  const TemporaryFolder folder;
  const std::string file = folder / "calls";
  (void)output_of("strace -f -o '" + file + "' '" JITSTACK "' " + std::to_string(process));
  Calls calls;
  bool stands = false;
  for (const std::string& of_thread : lines_of(output_of("cat '" + file + "'"))) {
    const std::string line = of_thread.substr(of_thread.find_first_not_of("0123456789 "));
    stands = stands || line.starts_with("ptrace(PTRACE_INTERRUPT");
    if (line.starts_with("ptrace(PTRACE_DETACH")) break;
    if (stands) calls.push_back(line);
  }
  return calls;
}

std::size_t count(const Calls& calls, const char* pattern) {
  const Pattern wanted(pattern);
  return static_cast<std::size_t>(
      std::ranges::count_if(calls, [&](const std::string& call) { return has_match(call, wanted); }));
}

class Standstill : public testing::TestWithParam<const char*> {};

/// Objects, their notes and symbols, and the files of GDB's list are looked for before the stop. During the stop the
/// threads and the mappings are listed. Only these are read: the registers; a stack for each thread; a byte of a
/// program that was not replaced; the state of the list of procedures; and the page of its head, twice, as it is found
/// and as it is kept.
TEST_P(Standstill, IsForRegistersAndStacks) {
  const TargetProgram program(GetParam());
  const std::size_t threads = program.stacks().size();
  ASSERT_GE(threads, 2u);
  const Calls calls = calls_while_it_stands(program.process());
  std::string text;
  for (const std::string& call : calls) text += call + "\n";
  EXPECT_EQ(count(calls, "^openat\\(\\d+, \"task\""), 1u) << text;
  EXPECT_EQ(count(calls, "^openat\\(\\d+, \"maps\""), 1u) << text;
  EXPECT_EQ(count(calls, "^(open|openat|newfstatat|readlink|mmap)\\("), 2u) << text;
  EXPECT_EQ(count(calls, "^ptrace\\(PTRACE_GETREGSET"), threads) << text;
  EXPECT_LE(count(calls, "^pread64\\("), threads + 4) << text;
}

/// Only the list's entries, of 32 bytes each, and new files are read during the stop; files have other sizes. One byte
/// tells whether another program was executed.
TEST_P(Standstill, IsNotForFilesOfGdbsList) {
  ::setenv("JITUNWIND_ATTACH", "gdb", 1);
  const TargetProgram program(GetParam());
  ::unsetenv("JITUNWIND_ATTACH");
  std::size_t entries = 0;
  for (const std::string& call : calls_while_it_stands(program.process())) {
    Groups found;
    if (!has_match(call, found, Pattern("^pread64.* = (\\d+)$"))) continue;
    const std::size_t size = std::stoul(found[1]);
    entries += size == 32;
    EXPECT_TRUE(size == 1 || size == 24 || size == 32 || size % 4096 == 0) << call;
  }
  EXPECT_GE(entries, 2u);
}

/// Calls that a signal may interrupt are repeated: strace makes every other read of the process's files and memory
/// fail. Calls that a signal cannot interrupt, such as waitid(2) without waiting, are not changed.
TEST(InterruptedCalls, AreMadeAgain) {
  const TargetProgram program(STANDSTILL_PROGRAM);
  const std::string process = std::to_string(program.process()), proc = "/proc/" + process;
  const std::string look = "'" JITSTACK "' " + process;
  const std::string expected = output_of(look);
  EXPECT_NE(expected.find("stand_still"), expected.npos) << expected;
  const TemporaryFolder folder;
  const std::string calls = folder / "calls";
  std::string options = "-o '" + calls + "' -e trace=read,pread64";
  options += " -e inject=read,pread64:error=EINTR:when=1+2";
  for (const std::string& path : {proc + "/maps", proc + "/status", proc + "/mem", std::string(STANDSTILL_PROGRAM)})
    options += " -P '" + path + "'";
  EXPECT_EQ(output_of("strace " + options + " " + look), expected);
  const Calls failed = lines_of(output_of("cat '" + calls + "'"));
  EXPECT_GE(count(failed, "^read\\(.*\\(INJECTED\\)"), 2u);
  EXPECT_GE(count(failed, "^pread64\\(.*\\(INJECTED\\)"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Standstill, testing::Values(TARGET_PROGRAMS));

}  // namespace
}  // namespace jitunwind::test
