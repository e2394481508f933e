// Walks the stacks of another process by this library, by elfutils' libdw and by nongnu's helper for ptrace.
//
//   PROGRAM targets MAX-FUNCTIONS [--benchmark_...]
//
//   target_walk/WAY/static|jit/DEPTH       a stopped thread that was walked before; an item is a frame
//   target_first_walk/WAY/DEPTH            of a stopped process that nothing is known of; an item is such a walk
//   target_registered/WAY/first|again/N    the same with N procedures registered, of 50 frames; an item is a walk
//   stacks_of_process/PROGRAM/LIBRARIES    a program that prints the stacks of 50 threads; an item is a run
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "bench/targets/onlooker.h"
#include "bench/targets/watched_process.h"

namespace bench {
namespace {

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

void run_program(benchmark::State& state, const std::string& program, const std::string& arguments) {
  const Watched& target = watched(arguments);
  const std::string command = program + " " + std::to_string(target.process()) + " >/dev/null 2>&1";
  for (auto _ : state)
    if (std::system(command.c_str()) != 0) return state.SkipWithError("the program failed");
  state.SetItemsProcessed(state.iterations());
}

void add_walks(const Way& way) {
  for (const char* const depth : {"50", "200"}) {
    const auto frames = static_cast<std::size_t>(std::atoi(depth));
    for (const char* const kind : {"static", "jit"}) {
      const bool has_jit = std::strcmp(kind, "jit") == 0;
      if (has_jit && !way.knows_registered) continue;
      const std::string arguments = joined(depth, " 1 0 ", has_jit ? "100 4" : "0");
      benchmark::RegisterBenchmark(joined("target_walk/", way.name, "/", kind, "/", depth).c_str(),
                                   [=](auto& state) { walk_again(state, way, frames, arguments); });
    }
    benchmark::RegisterBenchmark(joined("target_first_walk/", way.name, "/", depth).c_str(),
                                 [=](auto& state) { walk_first(state, way, frames, joined(depth, " 1 0 0")); });
  }
}

void add_registered(const Way& way) {
  for (const char* const registered : {"100", "20000"}) {
    const std::string arguments = joined("50 1 0 ", registered, " 4");
    benchmark::RegisterBenchmark(joined("target_registered/", way.name, "/again/", registered).c_str(),
                                 [=](auto& state) { walk_again(state, way, 50, arguments); });
    benchmark::RegisterBenchmark(joined("target_registered/", way.name, "/first/", registered).c_str(),
                                 [=](auto& state) { walk_first(state, way, 50, arguments); });
  }
}

void add_program(const Way& way) {
  for (const char* const libraries : {"0", "100"})
    benchmark::RegisterBenchmark(joined("stacks_of_process/", way.program, "/", libraries).c_str(), [=](auto& state) {
      run_program(state, way.command, joined("20 50 ", libraries, " 0"));
    })->UseRealTime();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const bench::Way way = bench::way();
  bench::add_walks(way);
  if (way.knows_registered) bench::add_registered(way);
  bench::add_own_benchmarks();
  if (way.program) bench::add_program(way);
  benchmark::RunSpecifiedBenchmarks();
}
