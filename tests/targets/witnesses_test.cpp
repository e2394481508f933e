// What other programs see of the same process: GDB, which is told of registered code, all frames; elfutils those of
// static code. Of our own programs and of what this system has.
#include <algorithm>
#include <regex>

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {
namespace {

using Pcs = std::vector<Addr>;
using Stacks = std::map<pid_t, Pcs>;

/// By elfutils, which ends at code without unwind information.
Stacks by_eu_stack(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const std::regex head("TID (\\d+):"), frame("#\\d+ +0x([0-9a-f]+).*");
  for (const std::string& line : lines_of(output_of("eu-stack -p " + std::to_string(process) + " 2>/dev/null; true"))) {
    std::smatch found;
    if (std::regex_match(line, found, head)) thread = std::stoi(found[1]);
    if (std::regex_match(line, found, frame)) stacks[thread].push_back(std::stoull(found[1], nullptr, 16));
  }
  return stacks;
}

Stacks by_gdb(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const std::string printed =
      output_of("gdb -nx -q -batch -iex 'set debuginfod enabled off' -p " + std::to_string(process) +
                " -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' -ex 'thread apply all frame apply "
                "all -q printf \"%#lx %#lx\\n\", (long)$pc, (long)$sp' 2>/dev/null");
  const std::regex head("Thread .*LWP (\\d+).*"), only("Thread (\\d+) .*process (\\d+).*"),
      frame("0x([0-9a-f]+) 0x([0-9a-f]+)");
  Addr last_sp = 0;
  for (const std::string& line : lines_of(printed)) {
    std::smatch found;
    if (std::regex_match(line, found, head)) thread = std::stoi(found[1]);
    if (std::regex_match(line, found, only)) thread = std::stoi(found[2]);
    if (!std::regex_match(line, found, frame)) continue;
    const Addr pc = std::stoull(found[1], nullptr, 16), sp = std::stoull(found[2], nullptr, 16);
    // Functions that were inlined are frames of GDB's; of one that calls itself each frame has its own place.
    if (stacks[thread].empty() || stacks[thread].back() != pc || sp != last_sp) stacks[thread].push_back(pc);
    last_sp = sp;
  }
  return stacks;
}

Stacks by_us(pid_t process) {
  Stacks stacks;
  const auto target = Target::attach(process);
  EXPECT_TRUE(target) << target.error().text();
  for (const TargetThread& thread : target->threads()) {
    Pcs& pcs = stacks[thread.id];
    Walk walk = target->walk(thread);
    for (const Frame& frame : walk) pcs.push_back(frame.pc());
    EXPECT_EQ(walk.why(), "complete");
  }
  return stacks;
}

class Witnesses : public testing::TestWithParam<const char*> {};

// covers: HL07
TEST_P(Witnesses, OfOurPrograms) {
  ::setenv("JITUNWIND_ATTACH", "gdb", 1);
  const TargetProgram program(GetParam());
  ::unsetenv("JITUNWIND_ATTACH");
  const Stacks ours = by_us(program.process());
  EXPECT_EQ(ours.size(), 3u);
  EXPECT_EQ(by_gdb(program.process()), ours);
  // Up to the first frame of code that was made at run time: pause(), stand_still(), and that one itself.
  for (const auto& [thread, pcs] : by_eu_stack(program.process())) {
    ASSERT_GE(pcs.size(), 3u) << thread;
    ASSERT_GE(ours.at(thread).size(), pcs.size()) << thread;
    EXPECT_TRUE(std::equal(pcs.begin(), pcs.begin() + 3, ours.at(thread).begin())) << thread;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Witnesses, testing::Values(TARGET_PROGRAMS));

/// A program of this system that waits for something.
class Waiting {
 public:
  explicit Waiting(const std::string& command) : process_(::fork()) {
    if (process_ != 0) return;
    ::execl("/bin/sh", "sh", "-c", ("exec " + command + " >/dev/null 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  ~Waiting() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t process() const { return process_; }

 private:
  pid_t process_;
};

/// Of static code all see the same, from the first to the last frame.
TEST(Witnesses, OfProgramsOfThisSystem) {
  for (const char* command : {"sleep 100", "perl -e 'sleep 100'",
                              "python3 -c 'import time\ndef f(n):\n  time.sleep(100) if n == 0 else f(n - 1)\nf(50)'",
                              "bash -c 'read -t 100 x < <(sleep 100)'", "gdb -nx -q -batch -ex 'shell sleep 100'"}) {
    if (std::system((std::string("command -v ") + std::string(command).substr(0, std::string(command).find(' ')) +
                     " >/dev/null")
                        .c_str()) != 0)
      continue;
    const Waiting program(command);
    // It has to come to its sleep first: what is seen before and after is the same then.
    Stacks ours, theirs, before;
    for (int i = 0; i < 60 && (ours.empty() || ours != before); ++i) {
      ::usleep(500'000);
      before = by_us(program.process());
      ::usleep(500'000);
      theirs = by_eu_stack(program.process());
      ours = by_us(program.process());
    }
    for (const auto& [thread, pcs] : theirs) {
      ASSERT_TRUE(ours.contains(thread)) << command;
      EXPECT_GE(pcs.size(), 2u) << command;
      EXPECT_EQ(pcs, ours.at(thread)) << command;
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
