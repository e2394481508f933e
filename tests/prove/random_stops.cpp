// Stops a program at random moments, and compares jitstack's output for its threads with the stacks that the program
// itself, elfutils and GDB see at that moment.
//
//   random_stops --stops N --gdb-every K [--engine] PROGRAM [ARGUMENT...]
//
// The program is run again and again until it was stopped N times. The progress is printed.
//
// jitstack and the program agree on all frames of the main thread; elfutils and GDB with jitstack on those of static
// code, up to the first that was made at run time. GDB takes as long as twenty of the others, and looks at each K-th
// moment. --engine: the program is a JIT that tells GDB itself, and is listened to. GDB is not told by this library
// then, and agrees on all frames up to the first guess in code of a module, where GDB guesses as well.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/prove/random_stops.h"
#include "tests/support/texts.h"

namespace jitunwind::random_stops {
namespace {

using test::Groups, test::Pattern;
using Clock = std::chrono::steady_clock;

struct SeenFrame {
  Addr pc = 0;
  std::string origin{};
  std::string line{};  ///< as it was printed
  bool is_static() const {
    return origin != "none" && !origin.starts_with("dyn_") && origin.find("guess") == std::string::npos;
  }
  /// True in code of a module, where GDB also guesses: by frame pointers, and by words that happen to lie on the stack.
  bool is_guess_in_module() const {
    return origin.find("guess") != std::string::npos && line.find(" JIT ") == std::string::npos;
  }
};
struct Stack {
  std::vector<SeenFrame> frames{};
  std::string cut{};  ///< where it ends too early, why
};
using Stacks = std::map<pid_t, Stack>;

/// Returns the output however the command ends.
std::vector<std::string> lines_by(const std::string& command) {
  int ignored = 0;
  return test::lines_of(test::output_of(command, ignored));
}

Addr number(const std::string& hex) { return std::stoull(hex, nullptr, 16); }

/// Returns nothing if another process traces the program, as a gcore that it has started itself does: a process has one
/// tracer.
std::optional<Stacks> by_jitstack(pid_t process) {
  Stacks stacks;
  bool is_traced = false;
  Stack* stack = nullptr;
  const Pattern head("thread (\\d+).*"), frame(" +#\\d+ +0x([0-9a-f]+) +(\\S+( guess)?) .*"), cut(".*cut short.*"),
      traced("jitstack: Process " + std::to_string(process) + " .* is traced by process \\d+ .*");
  for (const std::string& line : lines_by(JITSTACK " --hold " + std::to_string(process) + " 2>&1")) {
    Groups found;
    if (matches(line, found, head)) stack = &stacks[std::stoi(found[1])];
    if (stack && matches(line, found, frame)) stack->frames.push_back({number(found[1]), found[2], line});
    if (stack && matches(line, found, cut)) stack->cut = line;
    is_traced = is_traced || matches(line, traced);
  }
  return is_traced ? std::nullopt : std::optional(stacks);
}

Stacks by_eu_stack(pid_t process) {
  Stacks stacks;
  pid_t thread = 0;
  const Pattern head("TID (\\d+):"), frame("#\\d+ +0x([0-9a-f]+).*");
  for (const std::string& line : lines_by("eu-stack -n 0 -p " + std::to_string(process) + " 2>/dev/null")) {
    Groups found;
    if (matches(line, found, head)) thread = std::stoi(found[1]);
    if (matches(line, found, frame)) stacks[thread].frames.push_back({number(found[1])});
  }
  return stacks;
}

/// `frames` is the number of frames that are asked for in each thread: "all" or a number.
Stacks by_gdb(pid_t process, const std::string& frames_wanted) {
  Stacks stacks;
  pid_t thread = 0;
  const Pattern head("Thread .*LWP (\\d+).*"), only("Thread (\\d+) .*process (\\d+).*"),
      frame("0x([0-9a-f]+) 0x([0-9a-f]+)");
  const std::string command = "gdb -nx -q -batch -iex 'set debuginfod enabled off' -p " + std::to_string(process) +
                              " -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' -ex 'thread apply "
                              "all frame apply " +
                              frames_wanted + " -q printf \"%#lx %#lx\\n\", (long)$pc, (long)$sp' 2>/dev/null";
  Addr last_sp = 0;
  for (const std::string& line : lines_by(command)) {
    Groups found;
    if (matches(line, found, head)) thread = std::stoi(found[1]);
    if (matches(line, found, only)) thread = std::stoi(found[2]);
    if (!matches(line, found, frame)) continue;
    auto& frames = stacks[thread].frames;
    // A call takes stack, so no caller has its callee's SP. GDB's frames with the same SP are of two kinds: inlined
    // functions, with the pc of the frame that they are in, and functions that have left their frame by a jump to
    // another (libc's waitpid() to wait4()). GDB knows the latter from debugging information; the stack has only their
    // caller.
    const Addr pc = number(found[1]), sp = number(found[2]);
    if (frames.empty() || sp != last_sp)
      frames.push_back({pc});
    else
      frames.back().pc = pc;
    last_sp = sp;
  }
  return stacks;
}

/// Returns whether the main thread blocks the signal by which it is asked, as in posix_spawn(). It walks when it
/// unblocks the signal, which is another moment.
bool blocks_the_question(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  const std::string k_name = "SigBlk:\t";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(k_name)) return (number(line.substr(k_name.size())) >> (signal_number() - 1) & 1) != 0;
  return false;
}

/// A file that both processes map.
class SharedWalk {
 public:
  SharedWalk() {
    const int file = ::mkstemp(path_.data());
    void* const shared = file < 0 || ::ftruncate(file, sizeof(OwnWalk)) != 0
                             ? MAP_FAILED
                             : ::mmap(nullptr, sizeof(OwnWalk), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) std::abort();
    ::close(file);
    walk_ = static_cast<OwnWalk*>(shared);
  }
  ~SharedWalk() {
    ::munmap(walk_, sizeof(OwnWalk));
    ::unlink(path_.c_str());
  }
  SharedWalk(const SharedWalk&) = delete;
  SharedWalk& operator=(const SharedWalk&) = delete;
  OwnWalk& operator*() const { return *walk_; }
  OwnWalk* operator->() const { return walk_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/random_stops_XXXXXX";
  OwnWalk* walk_ = nullptr;
};

class Program {
 public:
  Program(char** argv, const SharedWalk& own, bool tells_gdb) {
    own->state.store(0);
    process_ = ::fork();
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv(k_file_variable, own.path().c_str(), 1);
    if (tells_gdb) ::setenv("JITUNWIND_ATTACH", "gdb", 1);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) ::dup2(nowhere, i);
    ::execv(argv[0], argv);
    ::_exit(127);
  }
  ~Program() {
    if (has_ended_) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t process() const { return process_; }
  bool has_ended() { return has_ended_ || wait(WNOHANG); }
  int status() const { return status_; }
  /// Returns false if the program has ended, or does not get there within a minute.
  bool wait_until(const std::function<bool()>& is_so) {
    for (const auto end = Clock::now() + std::chrono::minutes(1); !is_so(); ::usleep(50))
      if (has_ended() || Clock::now() > end) return false;
    return true;
  }
  bool stop() {
    if (has_ended() || ::kill(process_, SIGSTOP) != 0) return false;
    return !wait(WUNTRACED) && is_stopped_;
  }

 private:
  /// Returns true if the program has ended.
  bool wait(int how) {
    int status = 0;
    if (::waitpid(process_, &status, how) != process_) return false;
    is_stopped_ = WIFSTOPPED(status);
    if (is_stopped_) return false;
    status_ = status;
    return has_ended_ = true;
  }

  pid_t process_ = 0;
  bool has_ended_ = false, is_stopped_ = false;
  int status_ = 0;
};

class Observer {
 public:
  Observer(char** argv, std::size_t stops, std::size_t gdb_every, bool is_engine)
      : argv_(argv), wanted_(stops), gdb_every_(gdb_every), is_engine_(is_engine) {}

  bool run() {
    if (!measure()) return false;
    for (std::size_t programs = 0; stops_ < wanted_ && failures_ < 5; ++programs) {
      if (programs > 100 * wanted_) return fail("the program ends before it can be stopped");
      Program program(argv_, own_, !is_engine_);
      if (!go(program)) continue;
      // The first stop of each run is at any time; the following ones come soon.
      for (double most = seconds_; stops_ < wanted_ && stop_once(program, most); most = seconds_ / 8) {
      }
      show_progress(programs + 1);
    }
    std::printf(
        "%zu stops, %zu frames of %zu stacks, %zu made at run time, %zu stacks that end in code that nothing "
        "describes; "
        "%zu stacks compared with elfutils', %zu with GDB's; %zu while it blocked signals, %zu others while it was "
        "traced; %zu disagreements\n",
        stops_, frames_, stacks_, at_run_time_, undescribed_, with_elfutils_, with_gdb_, blocked_, traced_, failures_);
    return failures_ == 0 && frames_ != 0;
  }

 private:
  /// The program runs from here on. Programs that end at once are stopped as well.
  bool go(Program& program) {
    if (!program.wait_until([&] { return own_->state.load() == OwnWalk::k_ready; })) return false;
    own_->state.store(OwnWalk::k_go, std::memory_order_release);
    return true;
  }
  /// Measures how long the program runs.
  bool measure() {
    Program program(argv_, own_, !is_engine_);
    if (!go(program)) return fail("the program has not what walks in it");
    const auto begin = Clock::now();
    (void)program.wait_until([] { return false; });
    seconds_ = std::chrono::duration<double>(Clock::now() - begin).count();
    return program.has_ended() || fail("the program does not end");
  }
  /// Prints one line for so many stops, however many programs they take.
  void show_progress(std::size_t programs) {
    constexpr std::size_t k_stops = 20;
    if (stops_ / k_stops == shown_ / k_stops) return;
    shown_ = stops_;
    std::printf("%zu of %zu stops, in %zu runs of %.3g s\n", stops_, wanted_, programs, seconds_);
    std::fflush(stdout);
  }

  /// Waits more precisely than sleeping does.
  void wait_at_random(double most_seconds) {
    constexpr double k_fine = 1e-3;
    const double wanted = std::uniform_real_distribution(0.0, most_seconds)(random_);
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wanted));
    if (wanted > k_fine) ::usleep(static_cast<useconds_t>((wanted - k_fine) * 1e6));
    while (Clock::now() < end) {
    }
  }

  bool stop_once(Program& program, double most_seconds) {
    wait_at_random(most_seconds);
    if (!program.stop()) return false;
    const pid_t process = program.process();
    const auto seen = by_jitstack(process);
    if (!seen) {
      ++traced_;
      return ::kill(process, SIGCONT) == 0;
    }
    const Stacks& ours = *seen;
    compare_with("elfutils", by_eu_stack(process), ours, with_elfutils_);
    if (stops_ % gdb_every_ == 0)
      compare_with("GDB", by_gdb(process, frames_for_gdb(ours)), ours, with_gdb_, is_engine_);
    ++stops_;
    for (const auto& [thread, stack] : ours) {
      ++stacks_;
      frames_ += stack.frames.size();
      at_run_time_ += static_cast<std::size_t>(
          std::ranges::count_if(stack.frames, [](const SeenFrame& frame) { return !frame.is_static(); }));
      // .init and .fini of libraries have no unwind information, and are called through registers.
      const bool is_undescribed = !stack.frames.empty() && stack.frames.back().origin == "none";
      undescribed_ += is_undescribed;
      if (!stack.cut.empty() && !is_undescribed) disagree(stack.cut.c_str(), stack, {});
    }
    const bool is_blocked = blocks_the_question(process);
    // The program walks before it executes another instruction.
    own_->state.store(OwnWalk::k_go);
    ::syscall(SYS_tgkill, process, process, signal_number());
    ::kill(process, SIGCONT);
    if (!program.wait_until([&] { return own_->state.load(std::memory_order_acquire) == OwnWalk::k_done; }))
      return fail(program.has_ended() ? "the program has ended in place of walking" : "the program does not walk");
    const auto main_thread = ours.find(process);
    if (main_thread == ours.end()) return fail("jitstack does not show the main thread");
    if (is_blocked)
      ++blocked_;
    else
      compare_with_itself(main_thread->second);
    return failures_ < 5;
  }

  /// A script that calls itself for ever has 26,000 frames, which take GDB minutes. If frames are compared only up to
  /// the first that was made at run time, GDB is asked for no more than may precede that one. Its frames of inlined
  /// functions count as well.
  std::string frames_for_gdb(const Stacks& ours) const {
    constexpr std::size_t k_many = 1000, k_inlined = 20;
    std::size_t most = 0, most_compared = 0;
    for (const auto& [thread, stack] : ours) {
      const auto made = std::ranges::find_if_not(stack.frames, &SeenFrame::is_static);
      most = std::max(most, stack.frames.size());
      most_compared = std::max(most_compared, static_cast<std::size_t>(made - stack.frames.begin()));
    }
    const std::size_t wanted = k_inlined * (most_compared + 1);
    return is_engine_ || most < k_many || wanted > most ? "all" : std::to_string(wanted);
  }

  void compare_with_itself(const Stack& ours) {
    Stack own;
    for (std::size_t i = 0; i < own_->count; ++i)
      own.frames.push_back({own_->frames[i].pc, origin_name(own_->frames[i].origin)});
    // The program has written only the first frames of a very deep stack.
    const std::size_t count = own_->count == own_->frames.size() ? own_->count : ours.frames.size();
    const auto first = std::span(ours.frames).first(std::min(count, ours.frames.size()));
    const bool is_same = std::ranges::equal(first, own.frames, [&](const SeenFrame& a, const SeenFrame& b) {
      // A restarted system call begins again at its instruction of two bytes.
      const bool is_first = &a == &ours.frames.front();
      return (a.pc == b.pc || (is_first && a.pc == b.pc + 2)) && a.origin.starts_with(b.origin);
    });
    if (is_same) return;
    disagree("the program itself", ours, own);
    std::printf("its walk ended: %s, %s\n", stop_reason_name(own_->stop), own_->error.data());
  }

  /// `knows_all`: the other one also knows code made at run time, up to the first guess in a module.
  void compare_with(const char* who, const Stacks& theirs, const Stacks& ours, std::size_t& count,
                    bool knows_all = false) {
    for (const auto& [thread, stack] : theirs) {
      const auto known = ours.find(thread);
      if (known == ours.end()) {
        disagree(who, {}, stack);
        continue;
      }
      ++count;
      const auto& frames = known->second.frames;
      const auto made = std::ranges::find_if(
          frames, [=](const SeenFrame& f) { return knows_all ? f.is_guess_in_module() : !f.is_static(); });
      const auto static_frames = static_cast<std::size_t>(made - frames.begin());
      const bool all = static_frames == frames.size();
      const bool is_same = (all ? stack.frames.size() == frames.size() : stack.frames.size() >= static_frames) &&
                           std::equal(frames.begin(), made, stack.frames.begin(),
                                      [](const SeenFrame& a, const SeenFrame& b) { return a.pc == b.pc; });
      if (!is_same) disagree(who, known->second, stack);
    }
  }

  void disagree(const char* who, const Stack& ours, const Stack& theirs) {
    ++failures_;
    std::printf("%s, at stop %zu; jitstack:\n", who, stops_);
    constexpr std::size_t k_most = 50;
    for (const SeenFrame& frame : std::span(ours.frames).first(std::min(k_most, ours.frames.size())))
      std::printf("%s\n", frame.line.c_str());
    std::printf("the other:\n");
    for (const SeenFrame& frame : std::span(theirs.frames).first(std::min(k_most, theirs.frames.size())))
      std::printf("  %#lx %s\n", frame.pc, frame.origin.c_str());
  }
  bool fail(const char* what) {
    std::printf("%s\n", what);
    ++failures_;
    return false;
  }

  char** argv_;
  std::size_t wanted_, gdb_every_;
  bool is_engine_;
  SharedWalk own_;
  double seconds_ = 0;
  std::mt19937 random_{4711};
  std::size_t stops_ = 0, shown_ = 0, traced_ = 0, blocked_ = 0, stacks_ = 0, frames_ = 0, at_run_time_ = 0,
              undescribed_ = 0, with_elfutils_ = 0, with_gdb_ = 0, failures_ = 0;
};

}  // namespace
}  // namespace jitunwind::random_stops

int main(int argc, char** argv) {
  const bool is_engine = argc > 6 && std::strcmp(argv[5], "--engine") == 0;
  char** const program = argv + (is_engine ? 6 : 5);
  if (argc < 6 || std::strcmp(argv[1], "--stops") != 0 || std::strcmp(argv[3], "--gdb-every") != 0) {
    std::fprintf(stderr, "usage: random_stops --stops N --gdb-every K [--engine] PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  const auto stops = std::strtoul(argv[2], nullptr, 10), gdb_every = std::strtoul(argv[4], nullptr, 10);
  jitunwind::random_stops::Observer observer(program, stops, std::max(gdb_every, 1ul), is_engine);
  return observer.run() ? 0 : 1;
}
