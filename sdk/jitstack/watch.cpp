#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {
namespace {

using Clock = std::chrono::steady_clock;

/// Blocks SIGINT and SIGTERM and waits for them: delivered while a thread is being stopped, a signal would end the wait
/// for that thread.
class Interrupts {
 public:
  Interrupts() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~Interrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Returns true if a signal has come. Looks once even if `until` has passed.
  bool wait(Clock::time_point until) const {
    for (;;) {
      const auto left = std::max(until - Clock::now(), Clock::duration::zero());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      timespec time{};
      time.tv_sec = seconds.count();
      time.tv_nsec = std::chrono::nanoseconds(left - seconds).count();
      if (::sigtimedwait(&set_, nullptr, &time) > 0) return true;
      if (errno == EAGAIN) return false;
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

class Watching {
 public:
  explicit Watching(const Options& options) : options_(options), process_(options.processes.front()) {}

  ExitStatus run() {
    const Interrupts interrupts;
    auto target = Target::attach(process_, options_.hold ? Target::Hold::while_attached : Target::Hold::to_copy);
    if (!target) return progress_.say(target.error().text()), ExitStatus::no_target;
    begin_ = Clock::now();
    const auto end = begin_ + seconds(options_.watch);
    auto next = begin_;
    for (;;) {
      look(*target);
      const auto now = Clock::now();
      // Looks that would come too late are skipped.
      while (next <= now) next += seconds(1 / options_.frequency);
      if (next >= end) break;
      progress_.show(told());
      if (interrupts.wait(next)) break;
      if (const auto renewed = target->renew(); !renewed) {
        progress_.say(renewed.error().text());
        break;
      }
    }
    target->let_go();
    return write();
  }

 private:
  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }

  void look(Target& target) {
    if (!options_.hold) target.let_go();
    for (const TargetThread& thread : target.threads()) {
      if (!options_.threads.empty() && std::ranges::count(options_.threads, thread.id) == 0) continue;
      // Threads that have ended since they were listed have no stack.
      if (!target.registers(thread)) continue;
      profile_.add(see(target, thread, Rows::no, options_.guesses()));
    }
    ++looks_;
    target.let_go();
  }

  std::string told() const {
    char text[160];
    std::snprintf(text, sizeof text, "%llu stacks in %.1f s, %llu looks, %llu stacks cut short",
                  static_cast<unsigned long long>(profile_.stacks()),
                  std::chrono::duration<double>(Clock::now() - begin_).count(), static_cast<unsigned long long>(looks_),
                  static_cast<unsigned long long>(profile_.cut_short()));
    return text;
  }

  ExitStatus write() {
    progress_.clear();
    if (profile_.stacks() == 0)
      return progress_.say("No stack was seen: there is no such thread."), ExitStatus::no_target;
    const std::string output = options_.output.empty() ? "jitstack-" + std::to_string(process_) : options_.output;
    return profile_.write(output, told() + ", whether threads run or wait");
  }

  const Options& options_;
  pid_t process_;
  Profile profile_;
  Progress progress_;
  Clock::time_point begin_;
  std::uint64_t looks_ = 0;
};

}  // namespace

ExitStatus watch(const Options& options) { return Watching(options).run(); }

}  // namespace jitunwind::jitstack
