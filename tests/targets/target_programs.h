// Programs that stand still to be examined: target_program.cpp, linked in every way.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "tests/support/command.h"

namespace jitunwind::test {

/// A frame as an observer sees it.
struct SeenFrame {
  Addr pc = 0;
  Addr sp = 0;
  std::string origin{};
  std::string name{};
  friend bool operator==(const SeenFrame&, const SeenFrame&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const SeenFrame& frame) {
  return out << std::hex << frame.pc << " " << frame.sp << std::dec << " " << frame.origin << " " << frame.name << "\n";
}

struct SeenStack {
  std::vector<SeenFrame> frames{};
  std::string why{};
};

/// Called in a child: makes it end when the test that forked it ends, however that ends.
inline void die_with_the_test() {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) ::_exit(126);
}

/// A program in its own process, which has reported the stacks of its threads.
class TargetProgram {
 public:
  /// `folder` is where the program runs, and where the kernel leaves its core file.
  explicit TargetProgram(const std::string& program, const std::vector<std::string>& arguments = {"2"},
                         const std::string& folder = ".") {
    int out[2];
    if (::pipe(out) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      die_with_the_test();
      const rlimit any_size{RLIM_INFINITY, RLIM_INFINITY};
      if (::chdir(folder.c_str()) != 0 || (folder != "." && ::setrlimit(RLIMIT_CORE, &any_size) != 0)) ::_exit(126);
      ::dup2(out[1], STDOUT_FILENO);
      ::close(out[0]), ::close(out[1]);
      std::vector<char*> argv{const_cast<char*>(program.c_str())};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    FILE* const said = ::fdopen(out[0], "r");
    char line[1024];
    while (std::fgets(line, sizeof line, said) && std::string(line) != "ready\n") take(line);
    std::fclose(said);
    // A thread reports that it stands just before it calls pause().
    ::usleep(50'000);
  }
  ~TargetProgram() { end(); }
  TargetProgram(const TargetProgram&) = delete;
  TargetProgram& operator=(const TargetProgram&) = delete;

  pid_t process() const { return process_; }
  const std::map<pid_t, SeenStack>& stacks() const { return stacks_; }
  /// Ends the program and returns its status.
  int end() {
    int status = 0;
    if (process_ <= 0) return status;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }
  int wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }

 private:
  void take(const std::string& line) {
    std::istringstream in(line);
    std::string what;
    pid_t thread = 0;
    in >> what >> thread;
    SeenStack& stack = stacks_[thread];
    if (what == "why") {
      std::getline(in >> std::ws, stack.why);
      return;
    }
    SeenFrame frame;
    in >> std::hex >> frame.pc >> frame.sp >> frame.origin;
    std::getline(in >> std::ws, frame.name);
    stack.frames.push_back(std::move(frame));
  }

  pid_t process_ = 0;
  std::map<pid_t, SeenStack> stacks_;
};

#if defined(KERNEL_WRITES_CORES) && defined(TARGET_PROGRAM)
/// A program that crashed, and the kernel's core of it. That core begins with the notes and leaves out the pages of
/// code that equal the files.
struct KernelsCore {
  explicit KernelsCore(std::vector<std::string> arguments = {"2", "crash"})
      : program{TARGET_PROGRAM, std::move(arguments), folder.path()} {
    EXPECT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status)) << status;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) path = entry.path();
  }
  TemporaryFolder folder;
  TargetProgram program;
  const int status = program.wait();
  std::string path;
};
#endif

/// All frames of a walk.
inline SeenStack seen(Walk walk) {
  SeenStack stack;
  for (const Frame& frame : walk)
    stack.frames.push_back({frame.pc(), frame.sp(), origin_name(frame.origin()), frame.name()});
  stack.why = walk.why();
  return stack;
}

/// Returns the frames from the caller of stand_still() on, as the program itself has seen them.
inline std::vector<SeenFrame> callers_of_stand_still(const SeenStack& stack) {
  std::vector<SeenFrame> callers;
  bool is_behind = false;
  for (const SeenFrame& frame : stack.frames) {
    if (is_behind) callers.push_back(frame);
    is_behind = is_behind || frame.name == "stand_still";
  }
  return callers;
}

/// Expects the frames that the program has seen, for each thread of the target.
inline void expect_as_the_program_says(const Target& target, const TargetProgram& program) {
  EXPECT_EQ(target.threads().size(), program.stacks().size());
  for (const auto& [id, own] : program.stacks()) {
    EXPECT_GE(own.frames.size(), 5u);
    bool is_known = false;
    for (const TargetThread& thread : target.threads()) {
      if (thread.id != id) continue;
      is_known = true;
      const SeenStack stack = seen(target.walk(thread));
      EXPECT_EQ(callers_of_stand_still(stack), own.frames);
      EXPECT_EQ(stack.why, own.why);
    }
    EXPECT_TRUE(is_known) << id;
  }
}

}  // namespace jitunwind::test
