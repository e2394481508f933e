// Cold walks: the first one in a process, and walks of new functions in a process that has walked.
#include <benchmark/benchmark.h>
#include <time.h>

#include <array>
#include <string>

#include "bench/measurements.h"
#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::size_t k_depth = 50;
/// So many walks of new functions need more room in the tables than these have initially.
constexpr std::size_t k_many_walks = 8;

struct ColdWalk : Context {
  benchmark::State* state;
  const Walker* walker;
  double nanoseconds;
};

double thread_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void walk_once(Context* context) {
  auto& cold = *static_cast<ColdWalk*>(context);
  std::array<void*, k_depth> addresses;
  const double begin = thread_nanoseconds();
  const std::size_t found = cold.walker->walk(addresses);
  const double taken = thread_nanoseconds() - begin;
  cold.nanoseconds = taken;
  if (found != k_depth) cold.state->SkipWithError(("only " + std::to_string(found) + " frames").c_str());
}

/// Walks through functions that no other stack of this program has, starting with number `first`. Returns nanoseconds.
double walk(benchmark::State& state, const Walker& walker, std::size_t first) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < k_depth; ++i) functions.push_back(static_function(first + i));
  functions.push_back(walk_once);
  ColdWalk cold{{}, &state, &walker, 0};
  run_stack(functions, cold);
  return cold.nanoseconds;
}

void measure(benchmark::State& state, const Walker& walker, bool is_first, std::size_t walks) {
  if (!is_first) (void)walk(state, walker, 0);
  for (auto _ : state) {
    double nanoseconds = 0;
    for (std::size_t i = 0; i < walks; ++i) nanoseconds += walk(state, walker, (2 + i) * k_depth);
    state.SetIterationTime(nanoseconds * 1e-9);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(walks * k_depth));
}

void add(const Walker& walker, bool is_first, std::size_t walks) {
  const std::string kind = is_first ? "first_walk/" : "new_functions/";
  const std::string name = kind + walker.name + "/" + std::to_string(walks * k_depth);
  benchmark::RegisterBenchmark(name.c_str(), [=, &walker](auto& state) { measure(state, walker, is_first, walks); })
      ->UseManualTime()
      ->Iterations(1);
}

}  // namespace

void add_cold_benchmarks() {
  for (const Walker& walker : walkers()) {
    add(walker, true, 1);
    add(walker, false, 1);
    add(walker, false, k_many_walks);
  }
}

}  // namespace bench
