// Walks and throws through many functions in turn, as in programs with a JIT. Rows that are kept for a few of them do
// not help with the others.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "bench/jit_arena.h"
#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

namespace bench {

namespace {

/// The functions of one measurement. They lie one behind the other, or each on a page of its own.
struct Functions {
  std::size_t count;
  std::size_t shapes = 1;
  std::size_t distance = 32;
  const char* name = "";  ///< appended to the number
};
constexpr std::size_t k_many = 20'000;
constexpr Functions k_functions[]{{10},
                                  {100},
                                  {1000},
                                  {k_many},
                                  {k_many, 30, 32, "/30_shapes"},
                                  {k_many, k_many, 32, "/each_its_own"},
                                  {k_many, 1, 4096, "/pages_apart"},
                                  {100'000},
                                  {1'000'000}};
constexpr std::size_t k_passages = 20'000;  ///< the minimum in all iterations

enum class Passage { first, second };

/// A way to pass through a function, and the function that is called below it.
struct Way {
  std::string name;
  StackFunction below;
  const Walker* walker = nullptr;
};
/// The base Context comes first, because frames pass on its address.
struct Walking : Context {
  const Walker* walker;
  std::size_t frames = 0;
};
constexpr std::size_t k_frames = 4;  ///< the walker's caller, the function, its caller, and one more

void walk_one(Context* context) {
  auto& walking = *static_cast<Walking*>(context);
  std::array<void*, k_frames> addresses;
  walking.frames += walking.walker->walk(addresses);
}

void throw_one(Context*) { throw 1; }

/// Passes through `function` once. Returns whether that succeeded.
bool pass(const Way& way, std::vector<StackFunction>& functions, StackFunction function) {
  functions[1] = function;
  Walking context{{}, way.walker};
  try {
    run_stack(functions, context);
  } catch (int) {
    return true;
  }
  return context.frames == k_frames;
}

void through(benchmark::State& state, const Way& way, Registrar& registrar, const Functions& made, Passage passage) {
  const std::size_t count = made.count;
  const JitArena arena(count, made.distance, made.shapes);
  registrar.prepare(arena.functions());
  std::vector<StackFunction> functions{static_function(0), nullptr, way.below};
  bool is_right = true;
  const auto pass_all = [&] {
    for (std::size_t i = 0; i < count; ++i) is_right = pass(way, functions, entry_of(registrar, arena, i)) && is_right;
  };
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) registrar.register_function(i);
    // The costs of the very first passage do not depend on N.
    if (passage == Passage::second)
      pass_all();
    else
      is_right = pass(way, functions, static_function(1));
    const double begin = thread_seconds();
    pass_all();
    state.SetIterationTime(thread_seconds() - begin);
    for (std::size_t i = 0; i < count; ++i) registrar.cancel_function(i);
  }
  if (!is_right) state.SkipWithError("not through the function");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void add(const Way& way, std::size_t max_functions) {
  for (Registrar* const registrar : registrars()) {
    if (registrar->description() == nullptr) continue;
    for (const Functions& made : k_functions) {
      if (made.count > std::min(max_functions, registrar->max_functions())) continue;
      for (const Passage passage : {Passage::first, Passage::second}) {
        const std::string name = (passage == Passage::first ? "through_new/" : "through_again/") + way.name + "/" +
                                 registrar->description() + "/" + std::to_string(made.count) + made.name;
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { through(state, way, *registrar, made, passage); })
            ->UseManualTime()
            ->Iterations(static_cast<benchmark::IterationCount>(std::max(k_passages / made.count, std::size_t{1})));
      }
    }
  }
}

}  // namespace

void add_through_walk_benchmarks(std::size_t max_functions) {
  for (const Walker& walker : walkers())
    if (walker.passes_jit_frames) add({walker.name, walk_one, &walker}, max_functions);
}

void add_through_throw_benchmarks(std::size_t max_functions) { add({thrower(), throw_one}, max_functions); }

}  // namespace bench
