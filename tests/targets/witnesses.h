// The stacks of a process as GDB, elfutils and this library see them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <span>
#include <utility>

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {

using Pcs = std::vector<Addr>;
using Stacks = std::map<pid_t, Pcs>;

/// Returns the stacks from elfutils, which end at code without unwind information.
inline Stacks by_eu_stack(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const Pattern head("TID (\\d+):"), frame("#\\d+ +0x([0-9a-f]+).*");
  for (const std::string& line : lines_of(output_of("eu-stack -p " + std::to_string(process) + " 2>/dev/null; true"))) {
    Groups found;
    if (matches(line, found, head)) thread = std::stoi(found[1]);
    if (matches(line, found, frame)) stacks[thread].push_back(std::stoull(found[1], nullptr, 16));
  }
  return stacks;
}

/// Returns the stacks from GDB, without the frames that GDB adds for inlined functions and tail calls.
inline Stacks by_gdb(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const std::string printed =
      output_of("gdb -nx -q -batch -iex 'set debuginfod enabled off' -p " + std::to_string(process) +
                " -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' -ex 'thread apply all frame apply "
                "all -q python "
                "f = gdb.selected_frame(); "
                "f.type() in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME) or print(hex(f.pc()))' 2>/dev/null");
  const Pattern head("Thread .*LWP (\\d+).*"), only("Thread (\\d+) .*process (\\d+).*"), frame("0x([0-9a-f]+)");
  for (const std::string& line : lines_of(printed)) {
    Groups found;
    if (matches(line, found, head)) thread = std::stoi(found[1]);
    if (matches(line, found, only)) thread = std::stoi(found[2]);
    if (matches(line, found, frame)) stacks[thread].push_back(std::stoull(found[1], nullptr, 16));
  }
  return stacks;
}

/// `whys` gets the reason why the walk of each thread ended.
inline Stacks by_us(pid_t process, Guesses guesses = Guesses::confirmed, std::map<pid_t, std::string>* whys = nullptr) {
  Stacks stacks;
  const auto target = Target::attach(process);
  if (!target) {
    ADD_FAILURE() << target.error().text();
    return stacks;
  }
  for (const TargetThread& thread : target->threads()) {
    Pcs& pcs = stacks[thread.id];
    Walk walk = target->walk(thread, guesses);
    for (const Frame& frame : walk) pcs.push_back(frame.pc());
    if (whys) (*whys)[thread.id] = walk.why();
  }
  return stacks;
}

/// Returns whether ours has all frames of theirs, in their order.
inline bool has_all_of(const Pcs& ours, std::span<const Addr> theirs) {
  auto from = ours.begin();
  for (const Addr pc : theirs) {
    from = std::find(from, ours.end(), pc);
    if (from++ == ours.end()) return false;
  }
  return true;
}

/// A program that waits for something, in its own folder. Its standard input is open but has no data.
class Waiting {
 public:
  explicit Waiting(const std::string& command) {
    const std::string input = folder_ / "input";
    EXPECT_EQ(::mkfifo(input.c_str(), 0600), 0);
    process_ = ::fork();
    if (process_ != 0) return;
    die_with_the_test();
    ::setpgid(0, 0);
    if (::chdir(folder_.path().c_str()) != 0) ::_exit(126);
    ::execl("/bin/sh", "sh", "-c", ("exec " + command + " 0<>input >/dev/null 2>&1").c_str(), nullptr);
    ::_exit(127);
  }
  ~Waiting() {
    ::kill(-process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  pid_t process() const { return process_; }

 private:
  TemporaryFolder folder_;
  pid_t process_ = 0;
};

/// The stacks that all of them see at one moment.
struct SeenAtOnce {
  Stacks ours{}, bold{}, elfutils{}, gdb{};
  std::map<pid_t, std::string> whys{};
};

enum class WithGdb { no, yes };

/// Returns whether a signal has stopped all of the process's threads: proc_pid_stat(5).
inline bool is_stopped(pid_t process) {
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  std::error_code ended;
  return std::ranges::all_of(std::filesystem::directory_iterator(tasks, ended), [](const auto& task) {
    const std::string stat = text_of_file(task.path() / "stat");
    const std::size_t behind_name = stat.rfind(") ");
    return behind_name == stat.npos || stat.at(behind_name + 2) == 'T';
  });
}

/// Examines a process when it waits somewhere for a time, as `waits(ours)` decides. A signal stops it meanwhile.
template <class Waits>
SeenAtOnce seen_when_it_waits(pid_t process, WithGdb with_gdb, Waits waits) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  SeenAtOnce seen;
  for (bool is_there = false; !is_there && Clock::now() < deadline; ::kill(process, SIGCONT)) {
    ::usleep(200'000);
    ::kill(process, SIGSTOP);
    while (!is_stopped(process) && Clock::now() < deadline) ::usleep(1000);
    seen.ours = by_us(process, Guesses::confirmed, &seen.whys);
    is_there = waits(seen.ours);
    if (!is_there) continue;
    seen.bold = by_us(process, Guesses::bold);
    seen.elfutils = by_eu_stack(process);
    if (with_gdb == WithGdb::yes) seen.gdb = by_gdb(process);
  }
  EXPECT_LT(Clock::now(), deadline) << "it does not come to its wait";
  return seen;
}

/// A condition for programs whose threads all wait: the stacks are unchanged and some calls deep.
inline auto stands_still() {
  return [before = Stacks()](const Stacks& now) mutable {
    const bool is_same = std::exchange(before, now) == now;
    return is_same && std::ranges::all_of(now, [](const auto& stack) { return stack.second.size() >= 5; });
  };
}

}  // namespace jitunwind::test
