// jitstack: the stacks of processes, core files and samples. docs/jitstack.md.
#include <algorithm>
#include <cstdio>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"
#include "jitunwind/sdk/jitstack/stacks_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {
namespace {

/// Shows target after target and keeps the worst exit status.
class Run {
 public:
  explicit Run(const Options& options)
      : options_(options), output_(options.json ? json_output() : text_output(options, Colours(1))) {}

  ExitStatus run() {
    if (!options_.core.empty())
      show(options_.core, 0, Target::open_core(options_.core, {options_.root, options_.program}));
    for (const pid_t process : options_.processes)
      show("", process, Target::attach(process, options_.hold ? Target::Hold::while_attached : Target::Hold::to_copy));
    say_missing_threads();
    if (!output_->end()) {
      std::perror("jitstack: cannot write");
      return ExitStatus::not_written;
    }
    return status_;
  }

 private:
  void show(const std::string& core, pid_t process, const Result<Target, TargetError>& target) {
    if (!target) {
      progress_.say(target.error().text());
      output_->failed(core, process, target.error());
      return worse(ExitStatus::no_target);
    }
    remark_on_core(core, progress_);
    const auto& threads = target->threads();
    const auto is_asked_for = [&](const TargetThread& thread) {
      return options_.threads.empty() || std::ranges::count(options_.threads, thread.id) != 0;
    };
    output_->begin_target(core, target->process(), threads.size());
    std::size_t done = 0;
    for (const TargetThread& thread : threads) {
      progress_.show("thread " + std::to_string(++done) + " of " + std::to_string(threads.size()));
      if (!is_asked_for(thread)) continue;
      found_.push_back(thread.id);
      const SeenStack stack =
          see(*target, thread, options_.rows ? Rows::yes : Rows::no, options_.guesses(), k_most_kept);
      progress_.clear();
      output_->stack(stack);
      if (!stack.is_whole()) worse(ExitStatus::cut_short);
    }
  }

  /// A thread is missing only if no target has it.
  void say_missing_threads() {
    for (const pid_t thread : options_.threads) {
      if (std::ranges::count(found_, thread) != 0) continue;
      progress_.say("No target has a thread " + std::to_string(thread) + ".");
      worse(ExitStatus::no_target);
    }
  }

  void worse(ExitStatus status) { status_ = std::max(status_, status); }

  const Options& options_;
  std::unique_ptr<Output> output_;
  Progress progress_;
  std::vector<pid_t> found_;
  ExitStatus status_ = ExitStatus::whole;
};

}  // namespace
}  // namespace jitunwind::jitstack

int main(int argc, char** argv) {
  using namespace jitunwind::jitstack;
  ExitStatus status = ExitStatus::whole;
  const auto options = parse_options(argc, argv, status);
  if (!options) return static_cast<int>(status);
  if (options->check) return static_cast<int>(check_code(*options));
  if (!options->perf.empty()) return static_cast<int>(show_samples(*options));
  if (options->watch != 0) return static_cast<int>(watch(*options));
  return static_cast<int>(Run(*options).run());
}
