// Walking the stacks of another process, by this library, elfutils' libdw and nongnu's helper for ptrace.
//
//   PROGRAM targets MAX-FUNCTIONS [--benchmark_...]
//
//   target_walk/WAY/static|jit/DEPTH       a stopped thread that was walked before; an item is a frame
//   target_first_walk/WAY/DEPTH            of a stopped process that nothing is known of; an item is such a walk
//   target_registered/WAY/first|again/N    the same with N procedures registered, of 50 frames; an item is a walk
//   target_renewed/WAY/N                   the same of a process that has changed one of them and stands still again;
//                                          an item is both
//   target_stopped/WAY/quiet|loaded/THREADS  how long a process stands still to be copied, alone and beside more
//                                          programs that compute than there are processors; an item is a thread
//   stacks_of_process/PROGRAM/LIBRARIES    a program that prints the stacks of 50 threads; an item is a run
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/targets/onlooker.h"
#include "jitunwind/sdk/target.h"

extern char** environ;

namespace bench {
namespace {

/// A process with stacks: watched.cpp. One of each kind lives until the end.
class Watched {
 public:
  explicit Watched(const std::string& arguments) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    const std::string command = "exec '" WATCHED_PROGRAM "' " + arguments;
    std::array<char*, 4> argv{const_cast<char*>("sh"), const_cast<char*>("-c"), const_cast<char*>(command.c_str()),
                              nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (::posix_spawn(&process_, "/bin/sh", &actions, nullptr, argv.data(), environ) != 0) std::abort();
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]), ::close(out[1]);
    in_ = in[1], out_ = out[0];
    char said = 0;
    if (::read(out_, &said, 1) != 1) std::abort();
    ::usleep(50'000);  // until what has said so has come to stand
  }
  ~Watched() {
    ::close(in_), ::close(out_);
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  pid_t process() const { return process_; }
  /// A procedure is cancelled and registered. Precondition: the process runs.
  void change() const {
    char said = 0;
    if (::write(in_, "c", 1) != 1 || ::read(out_, &said, 1) != 1) std::abort();
  }
  void stop() {
    if (is_stopped_) return;
    if (::ptrace(PTRACE_SEIZE, process_, nullptr, nullptr) != 0) std::abort();
    ::ptrace(PTRACE_INTERRUPT, process_, nullptr, nullptr);
    ::waitpid(process_, nullptr, __WALL);
    is_stopped_ = true;
  }

 private:
  pid_t process_ = 0;
  int in_ = -1, out_ = -1;
  bool is_stopped_ = false;
};

Watched& watched(const std::string& arguments) {
  static std::map<std::string, std::unique_ptr<Watched>> all;
  auto& one = all[arguments];
  if (!one) one = std::make_unique<Watched>(arguments);
  return *one;
}

struct Way {
  const char* name;
  std::unique_ptr<Onlooker> (*look_at)(pid_t);
  bool knows_registered;
};
const std::vector<Way> k_ways{{"jitunwind", onlooker_of_jitunwind, true},
                              {"libdw", onlooker_of_libdw, false},
#ifdef BENCH_NONGNU_PTRACE
                              {"nongnu ptrace", onlooker_of_nongnu, false}
#endif
};

std::string few_frames(std::size_t frames) { return "only " + std::to_string(frames) + " frames"; }

void walk_again(benchmark::State& state, const Way& way, std::size_t depth, const std::string& arguments) {
  Watched& target = watched(arguments);
  target.stop();
  const auto onlooker = way.look_at(target.process());
  std::size_t frames = 0;
  for (int i = 0; i < 3; ++i) frames = onlooker ? onlooker->walk(target.process()) : 0;
  if (frames < depth) return state.SkipWithError(few_frames(frames).c_str());
  for (auto _ : state) benchmark::DoNotOptimize(onlooker->walk(target.process()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(frames));
}

void walk_first(benchmark::State& state, const Way& way, std::size_t depth, const std::string& arguments) {
  Watched& target = watched(arguments);
  target.stop();
  for (auto _ : state) {
    const auto onlooker = way.look_at(target.process());
    const std::size_t frames = onlooker ? onlooker->walk(target.process()) : 0;
    if (frames < depth) return state.SkipWithError(few_frames(frames).c_str());
  }
  state.SetItemsProcessed(state.iterations());
}

void renew(benchmark::State& state, const std::string& arguments) {
  const Watched target(arguments);  // not one that is traced already
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

/// Programs that compute, two for each processor, for as long as this lives.
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

/// From before the first thread is told to stop until all are told to go on.
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

void run_program(benchmark::State& state, const std::string& program, const std::string& arguments) {
  const Watched& target = watched(arguments);
  const std::string command = program + " " + std::to_string(target.process()) + " >/dev/null 2>&1";
  for (auto _ : state)
    if (std::system(command.c_str()) != 0) return state.SkipWithError("the program failed");
  state.SetItemsProcessed(state.iterations());
}

template <class... Arguments>
std::string joined(const Arguments&... arguments) {
  std::string all;
  ((all += arguments), ...);
  return all;
}

void add_walks(const Way& way) {
  for (const char* const depth : {"50", "200"}) {
    const auto frames = static_cast<std::size_t>(std::atoi(depth));
    for (const char* const kind : {"static", "jit"}) {
      const bool has_jit = std::strcmp(kind, "jit") == 0;
      if (has_jit && !way.knows_registered) continue;
      const std::string arguments = joined(depth, " 1 0 ", has_jit ? "100 4" : "0");
      benchmark::RegisterBenchmark(joined("target_walk/", way.name, "/", kind, "/", depth).c_str(),
                                   [=, &way](auto& state) { walk_again(state, way, frames, arguments); });
    }
    benchmark::RegisterBenchmark(joined("target_first_walk/", way.name, "/", depth).c_str(),
                                 [=, &way](auto& state) { walk_first(state, way, frames, joined(depth, " 1 0 0")); });
  }
}

void add_registered(const Way& way) {
  for (const char* const registered : {"100", "20000"}) {
    const std::string arguments = joined("50 1 0 ", registered, " 4");
    benchmark::RegisterBenchmark(joined("target_registered/", way.name, "/again/", registered).c_str(),
                                 [=, &way](auto& state) { walk_again(state, way, 50, arguments); });
    benchmark::RegisterBenchmark(joined("target_registered/", way.name, "/first/", registered).c_str(),
                                 [=, &way](auto& state) { walk_first(state, way, 50, arguments); });
    benchmark::RegisterBenchmark(joined("target_renewed/", way.name, "/", registered).c_str(),
                                 [=](auto& state) { renew(state, arguments); });
  }
}

void add_programs() {
  const std::map<std::string, std::string> programs{{"jitstack", JITSTACK}, {"eu-stack", "eu-stack -p"}};
  for (const auto& [name, program] : programs) {
    if (std::system(("command -v " + program + " >/dev/null").c_str()) != 0) continue;
    for (const char* const libraries : {"0", "100"})
      benchmark::RegisterBenchmark(joined("stacks_of_process/", name, "/", libraries).c_str(), [=](auto& state) {
        run_program(state, program, joined("20 50 ", libraries, " 0"));
      })->UseRealTime();
  }
}

void add_all() {
  for (const Way& way : k_ways) {
    add_walks(way);
    if (way.knows_registered) add_registered(way);
  }
  for (const bool is_loaded : {false, true})
    for (const char* const threads : {"1", "50"})
      benchmark::RegisterBenchmark(
          joined("target_stopped/jitunwind/", is_loaded ? "loaded/" : "quiet/", threads).c_str(),
          [=](auto& state) {
            stand_still(state, static_cast<std::size_t>(std::atoi(threads)), is_loaded, joined("20 ", threads, " 0 0"));
          })
          ->UseManualTime();
  add_programs();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  bench::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
