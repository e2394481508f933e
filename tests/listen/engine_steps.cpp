// Stops an engine at random moments in code that it made at run time, and single-steps it: each frame must return to
// the address that the walk of that moment gave.
//
//   engine_steps --stops N --thread NAME PROGRAM [ARGUMENT...]
//
// A frame has returned when SP is above it for the first time. There is no judgement if that takes too long, or if the
// thread changes to another stack and does not come back.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "tests/listen/written_for_perf.h"

namespace {

using namespace jitunwind;

constexpr int k_most_steps = 20'000;
constexpr std::size_t k_most_callers = 6;

struct Seen {
  Addr pc = 0;
  Addr sp = 0;
  bool is_guess = false;
  bool is_made = false;  ///< at run time
  std::string name{};
};

pid_t find_thread(pid_t process, const std::string& name) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string comm;
    std::getline(std::ifstream(entry.path() / "comm"), comm);
    if (comm.starts_with(name)) return std::stoi(entry.path().filename());
  }
  return 0;
}

class Steps {
 public:
  Steps(pid_t process, pid_t thread) : process_(process), thread_(thread) {}

  /// Returns false if the engine has ended.
  bool stop() {
    if (::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) return false;
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0 || !wait()) return false;
    look();
    ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
    return true;
  }
  std::size_t stops() const { return stops_; }
  bool print() const {
    std::printf("%zu stops in code made at run time, %zu callers returned to, %zu of them guessed; %zu wrong\n", stops_,
                compared_, guessed_, wrong_);
    return wrong_ == 0;
  }

 private:
  bool wait() {
    int status = 0;
    if (::waitpid(thread_, &status, __WALL) != thread_ || !WIFSTOPPED(status)) return false;
    const bool is_trap = (status >> 16) != 0 || WSTOPSIG(status) == SIGTRAP;
    signal_ = is_trap ? 0 : WSTOPSIG(status);
    return true;
  }

  void look() {
    if (!target_) {
      auto target = Target::of_traced(process_);
      if (!target) return;
      target_.emplace(std::move(*target));
    } else if (!target_->renew()) {
      return;
    }
    for (const TargetThread& thread : target_->threads())
      if (thread.id == thread_) return step(frames_of(thread));
  }
  std::vector<Seen> frames_of(const TargetThread& thread) const {
    std::vector<Seen> frames;
    Walk walk = target_->walk(thread);
    for (const Frame& frame : walk) {
      Module module;
      const bool is_made = !target_->space().modules.find(frame.address().lookup(), module);
      frames.push_back({frame.pc(), frame.sp(), frame.is_guess(), is_made, frame.name()});
      if (frames.size() == k_most_callers + 1) break;
    }
    return frames;
  }

  void step(const std::vector<Seen>& frames) {
    if (frames.size() < 2 || !frames.front().is_made) return;
    ++stops_;
    // Stacks of other threads may be close by.
    constexpr Addr k_near = Addr{1} << 16;
    const Addr lowest = frames.front().sp - k_near, highest = frames.back().sp;
    std::size_t next = 1;
    Addr pc = frames.front().pc;
    for (int left = k_most_steps; left != 0 && next != frames.size(); --left) {
      const Addr before = std::exchange(pc, 0);
      if (::ptrace(PTRACE_SINGLESTEP, thread_, nullptr, signal_) != 0 || !wait()) return;
      pc = register_at(offsetof(user_regs_struct, rip));
      const Addr sp = register_at(offsetof(user_regs_struct, rsp));
      if (sp < lowest || sp > highest || sp < frames[next].sp) continue;
      if (!is_return(before)) return;
      ++compared_;
      if (frames[next - 1].is_guess) ++guessed_;
      if (pc != frames[next].pc || sp != frames[next].sp) return complain(frames, next, pc, sp);
      ++next;
    }
  }
  bool is_return(Addr pc) const {
    const auto byte = ::ptrace(PTRACE_PEEKTEXT, thread_, pc, nullptr) & 0xff;
    return byte == 0xc3 || byte == 0xc2;
  }
  Addr register_at(std::size_t offset) const {
    return static_cast<Addr>(::ptrace(PTRACE_PEEKUSER, thread_, offsetof(user, regs) + offset, nullptr));
  }
  void complain(const std::vector<Seen>& frames, std::size_t at, Addr pc, Addr sp) {
    ++wrong_;
    std::printf("returned to %#lx, sp %#lx, and not to frame %zu of:\n", pc, sp, at);
    for (const Seen& frame : frames)
      std::printf("  %#lx sp %#lx%s %s\n", frame.pc, frame.sp, frame.is_guess ? " guess" : "", frame.name.c_str());
  }

  pid_t process_, thread_;
  std::optional<Target> target_;
  int signal_ = 0;
  std::size_t stops_ = 0, compared_ = 0, guessed_ = 0, wrong_ = 0;
};

bool prove(std::size_t stops, const std::string& name, char** program) {
  const pid_t process = ::fork();
  if (process == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; ++i) ::dup2(nowhere, i);
    ::execvp(program[0], program);
    ::_exit(127);
  }
  // A loaded machine takes seconds until the work begins, and a stop before that is not in code made at run time.
  using Clock = std::chrono::steady_clock;
  const auto last_begin = Clock::now() + std::chrono::minutes(2);
  pid_t thread = 0;
  while ((thread = find_thread(process, name)) == 0 && Clock::now() < last_begin) ::usleep(10'000);
  ::sleep(1);
  Steps steps(process, thread);
  std::mt19937 random(4711);
  for (std::size_t tries = 0; steps.stops() < stops; ++tries) {
    if (tries > 20 * stops && Clock::now() > last_begin) break;
    ::usleep(std::uniform_int_distribution<useconds_t>(1'000, 10'000)(random));
    if (!steps.stop()) break;
  }
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  test::remove_written_for_perf(process);
  return steps.print() && steps.stops() >= stops;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || std::strcmp(argv[1], "--stops") != 0 || std::strcmp(argv[3], "--thread") != 0) {
    std::fprintf(stderr, "usage: engine_steps --stops N --thread NAME PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  return prove(std::strtoul(argv[2], nullptr, 10), argv[4], argv + 5) ? 0 : 1;
}
