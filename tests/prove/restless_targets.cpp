// A tracer that lives on, and targets that stop, end, execute programs, fork, unmap and make threads at any moment:
// whatever happens while they are attached to, no thread is left stopped or traced.
//
//   restless_targets --attaches N [--seed S]
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  unsigned below(unsigned count) { return static_cast<unsigned>(engine_() % count); }
  unsigned any() { return static_cast<unsigned>(engine_()); }

 private:
  std::minstd_rand engine_;
};

[[noreturn]] void execute_again(unsigned seed) {
  ::execl("/proc/self/exe", "restless_targets", "--target", std::to_string(seed).c_str(), nullptr);
  ::_exit(1);
}

/// The child shares this thread's memory, and the thread waits for it where no signal and no tracer wakes it.
void fork_in_place(unsigned microseconds) {
  if (const pid_t child = ::vfork(); child == 0) {
    ::usleep(microseconds);
    ::_exit(0);
  } else if (child > 0) {
    ::waitpid(child, nullptr, 0);
  }
}

/// Calls code that exists only as long as it is called.
void call_and_unmap() {
  constexpr unsigned char k_return = 0xc3;
  constexpr std::size_t k_size = 4096;
  void* const code = ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return;
  std::memset(code, k_return, k_size);
  reinterpret_cast<void (*)()>(code)();
  ::munmap(code, k_size);
}

/// A process that executes a program, or is killed, gets no more threads.
void raise_on_a_thread() try {
  std::thread([] { ::raise(SIGUSR1); }).join();
} catch (const std::system_error&) {
}

void live(Dice dice, bool is_first) {
  for (;;) {
    switch (const unsigned what = dice.below(2000); what) {
      case 0:
        execute_again(dice.any());
      case 1:
        if (is_first) ::_exit(0);
        break;
      case 2:
        ::kill(::getpid(), SIGSTOP);
        break;
      case 3:
        if (dice.below(20) == 0) fork_in_place(1'200'000);  // longer than a stop waits
        break;
      case 4:
        ::raise(SIGKILL);
        break;
      case 5:
        if (!is_first) return;
        break;
      default:
        if (what % 4 == 0) fork_in_place(dice.below(500));
        if (what % 4 == 1) call_and_unmap();
        if (what % 4 == 2) ::usleep(dice.below(200));
        if (what % 4 == 3) raise_on_a_thread();
    }
  }
}

[[noreturn]] void be_target(unsigned seed) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGUSR1, [](int) {});
  for (const unsigned other : {1u, 2u}) std::thread(live, Dice(seed + other), false).detach();
  live(Dice(seed), true);
  ::_exit(0);
} catch (const std::system_error&) {
  ::_exit(1);
}

/// The processes that are looked at; a process that has ended is replaced by a new one.
class Targets {
 public:
  explicit Targets(Dice& dice) : dice_(dice) {}
  ~Targets() {
    for (const pid_t process : all_) {
      if (process == 0) continue;
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }
  Targets(const Targets&) = delete;
  Targets& operator=(const Targets&) = delete;

  /// Returns a process that runs, as far as can be known.
  pid_t any() {
    pid_t& process = all_[dice_.below(static_cast<unsigned>(all_.size()))];
    if (process != 0) ::kill(process, SIGCONT);
    if (process != 0 && ::waitpid(process, nullptr, WNOHANG) == 0) return process;
    const unsigned seed = dice_.any();
    process = ::fork();
    if (process == 0) execute_again(seed);
    return process;
  }

 private:
  Dice& dice_;
  std::array<pid_t, 4> all_{};
};

/// Returns "" if none of its threads is traced.
std::string who_is_traced(pid_t process) {
  for (const pid_t thread : ProcessFolder(process).threads()) {
    const auto status = ProcessFolder(thread).status();
    if (status && (status->tracer != 0 || status->state == 't'))
      return "thread " + std::to_string(thread) + " is in state " + status->state + ", traced by " +
             std::to_string(status->tracer);
  }
  return "";
}

struct Counts {
  unsigned attached = 0, refused = 0, not_stopped = 0, frames = 0;
};

void look(pid_t process, Dice& dice, Counts& counts) {
  const auto hold = dice.below(2) == 0 ? Target::Hold::to_copy : Target::Hold::while_attached;
  auto target = Target::attach(process, hold);
  if (!target) return void(++counts.refused);
  ++counts.attached;
  for (const TargetThread& thread : target->threads()) {
    counts.not_stopped += !thread.is_stopped;
    for ([[maybe_unused]] const Frame& frame : target->walk(thread)) ++counts.frames;
  }
  if (dice.below(4) == 0) ::kill(process, SIGKILL);
  if (dice.below(4) == 0) target->let_go();
  if (dice.below(4) == 0) (void)target->renew();
}

int run(unsigned attaches, unsigned seed) {
  Dice dice(seed);
  Targets targets(dice);
  Counts counts;
  while (counts.attached + counts.refused < attaches) {
    const pid_t process = targets.any();
    ::usleep(dice.below(1000));
    look(process, dice, counts);
    if (const std::string traced = who_is_traced(process); !traced.empty()) {
      std::printf("seed %u, attach %u: process %d, %s\n", seed, counts.attached, process, traced.c_str());
      return 1;
    }
  }
  std::printf("seed %u: attached to %u, %u refused, %u threads did not stop in time, %u frames\n", seed,
              counts.attached, counts.refused, counts.not_stopped, counts.frames);
  return counts.attached > attaches / 2 && counts.frames > counts.attached ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind

int main(int argc, char** argv) {
  unsigned attaches = 200, seed = std::random_device()();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const auto value = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    if (option == "--target") jitunwind::be_target(value);
    if (option == "--attaches") attaches = value;
    if (option == "--seed") seed = value;
  }
  return jitunwind::run(attaches, seed);
}
