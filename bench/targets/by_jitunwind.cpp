// Looks at a process by this library, and makes the measurements that only this library has:
//   target_renewed/jitunwind/N             a walk of 50 frames of a process that has changed one of N procedures and
//                                          is stopped again; an item is both
//   target_stopped/jitunwind/quiet|loaded/THREADS  how long a process is stopped to be copied, alone and beside more
//                                          programs that compute than there are processors; an item is a thread
#include "jitunwind/sdk/target.h"

#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/targets/onlooker.h"
#include "bench/targets/watched_process.h"

namespace bench {
namespace {

class Jitunwind final : public Onlooker {
 public:
  explicit Jitunwind(jitunwind::Target target) : target_(std::move(target)) {}
  std::size_t walk(pid_t thread) override {
    for (const jitunwind::TargetThread& known : target_.threads()) {
      if (known.id != thread) continue;
      jitunwind::Addr seen = 0;
      std::size_t frames = 0;
      jitunwind::Walk walk = target_.walk(known);
      for (const jitunwind::Frame& frame : walk) {
        seen ^= frame.pc();
        ++frames;
      }
      return walk.stop_reason() == jitunwind::StopReason::outermost && seen != 0 ? frames : 0;
    }
    return 0;
  }

 private:
  jitunwind::Target target_;
};

std::unique_ptr<Onlooker> look_at(pid_t process) {
  auto target = jitunwind::Target::of_traced(process);
  if (!target) return nullptr;
  return std::make_unique<Jitunwind>(std::move(*target));
}

void renew(benchmark::State& state, const std::string& arguments) {
  const Watched target(arguments);  // a process that is not traced yet
  auto attached = jitunwind::Target::attach(target.process());
  const auto frames = [&] {
    std::size_t count = 0;
    for (const auto& frame : attached->walk(attached->threads().at(0))) count += frame.pc() != 0;
    return count;
  };
  if (!attached || frames() < 50) return state.SkipWithError("no target");
  for (auto _ : state) {
    state.PauseTiming();
    attached->let_go();
    target.change();
    state.ResumeTiming();
    if (!attached->renew() || frames() < 50) return state.SkipWithError("not renewed");
  }
  state.SetItemsProcessed(state.iterations());
}

/// Programs that compute, two for each processor, as long as this object lives.
class Load {
 public:
  Load() {
    for (long left = 2 * ::sysconf(_SC_NPROCESSORS_ONLN); left > 0; --left) {
      const pid_t child = ::fork();
      if (child < 0) std::abort();
      if (child == 0) compute();
      children_.push_back(child);
    }
  }
  ~Load() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  Load(const Load&) = delete;

 private:
  [[noreturn]] static void compute() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned long count = 0;;) count = count + 1;
  }
  std::vector<pid_t> children_;
};

/// Measures the time from before the first thread is told to stop until all are told to continue.
void stand_still(benchmark::State& state, std::size_t threads, bool is_loaded, const std::string& arguments) {
  const Watched& target = watched(arguments);
  std::optional<Load> load;
  if (is_loaded) load.emplace();
  for (auto _ : state) {
    const auto attached = jitunwind::Target::attach(target.process(), jitunwind::Target::Hold::to_copy);
    if (!attached || attached->threads().size() != threads) return state.SkipWithError("not all threads");
    state.SetIterationTime(static_cast<double>(attached->stopped_nanoseconds()) * 1e-9);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(threads));
}

}  // namespace

Way way() { return {"jitunwind", look_at, true, "jitstack", JITSTACK}; }

void add_own_benchmarks() {
  for (const char* const registered : {"100", "20000"})
    benchmark::RegisterBenchmark(joined("target_renewed/jitunwind/", registered).c_str(),
                                 [=](auto& state) { renew(state, joined("50 1 0 ", registered, " 4")); });
  for (const bool is_loaded : {false, true})
    for (const char* const threads : {"1", "50"})
      benchmark::RegisterBenchmark(
          joined("target_stopped/jitunwind/", is_loaded ? "loaded/" : "quiet/", threads).c_str(),
          [=](auto& state) {
            stand_still(state, static_cast<std::size_t>(std::atoi(threads)), is_loaded, joined("20 ", threads, " 0 0"));
          })
          ->UseManualTime();
}

}  // namespace bench
