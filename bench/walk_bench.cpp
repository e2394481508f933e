// The time to walk the innermost `depth` frames of a stack. All are C++ functions, or every fourth is made at run time.
// The stack is the same at each walk, or another one of the same functions.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

namespace bench {

namespace {

constexpr std::array<std::size_t, 4> k_depths{10, 50, 200, 1000};
constexpr std::array<std::size_t, 2> k_unlike_depths{50, 200};
constexpr std::size_t k_jit_every = 4;

/// The data of the deepest function. The base Context comes first, because frames pass on its address.
struct Measurement : Context {
  benchmark::State* state;
  const Walker* walker;
  const Registered* registered;
  std::size_t depth;
  bool with_jit;
};

/// Returns "" when the walk saw every frame that it should have seen.
std::string mistake(const Measurement& measured, std::span<void* const> found) {
  if (found.size() != measured.depth) return "only " + std::to_string(found.size()) + " frames";
  const auto jit =
      std::count_if(found.begin(), found.end(), [&](void* pc) { return measured.registered->contains(pc); });
  const auto expected = measured.with_jit ? static_cast<std::ptrdiff_t>(measured.depth / k_jit_every) : 0;
  // The walker's own frames take places at the inner end.
  if (jit > expected + 1 || jit + 2 < expected) return "wrong frames: " + std::to_string(jit) + " JIT frames";
  std::vector<void*> distinct(found.begin(), found.end());
  std::sort(distinct.begin(), distinct.end());
  if (std::unique(distinct.begin(), distinct.end()) != distinct.end()) return "wrong frames: one address twice";
  return "";
}

/// Looks at a walk's result.
void check(Context* context) {
  auto& measured = *static_cast<Measurement*>(context);
  std::array<void*, k_max_depth> addresses;
  const std::span<void*> into(addresses.data(), measured.depth);
  const std::string wrong = mistake(measured, into.first(measured.walker->walk(into)));
  if (!wrong.empty()) measured.state->SkipWithError(wrong.c_str());
}

void measure(Context* context) {
  auto& measured = *static_cast<Measurement*>(context);
  check(context);
  if (measured.state->error_occurred()) return;
  std::array<void*, k_max_depth> addresses;
  const std::span<void*> into(addresses.data(), measured.depth);
  for (auto _ : *measured.state) benchmark::DoNotOptimize(measured.walker->walk(into));
  measured.state->SetItemsProcessed(measured.state->iterations() * static_cast<std::int64_t>(measured.depth));
}

/// Walks once, or not at all where the way to here is what is measured.
void walk_once(Context* context) {
  auto& measured = *static_cast<Measurement*>(context);
  if (!measured.walker) return;
  std::array<void*, k_max_depth> addresses;
  const std::span<void*> into(addresses.data(), measured.depth);
  benchmark::DoNotOptimize(measured.walker->walk(into));
}

/// Returns the functions of a stack without the one that measures.
std::vector<StackFunction> functions_of(std::size_t depth, bool with_jit, const Registered& registered) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < depth; ++i) {
    const bool jit = with_jit && i % k_jit_every == k_jit_every - 1;
    functions.push_back(jit ? registered.entry(i / k_jit_every) : static_function(i));
  }
  return functions;
}

void walk(benchmark::State& state, const Walker& walker, std::size_t depth, bool with_jit, const JitArena& arena) {
  const Registered registered(arena, with_jit ? depth / k_jit_every : 0);
  std::vector<StackFunction> functions = functions_of(depth, with_jit, registered);
  functions.push_back(measure);
  Measurement measured{{}, &state, &walker, &registered, depth, with_jit};
  run_stack(functions, measured);
}

using Stacks = std::vector<std::vector<StackFunction>>;
double seconds_of(const Stacks& stacks, Measurement& measured) {
  const double begin = thread_seconds();
  for (const auto& functions : stacks) run_stack(functions, measured);
  return thread_seconds() - begin;
}

/// Walks stacks on which the same functions have called each other in another order each time. The calls take as long
/// as the walks, and are measured without them.
void walk_unlike(benchmark::State& state, const Walker& walker, std::size_t depth, bool with_jit,
                 const JitArena& arena) {
  const Registered registered(arena, with_jit ? depth / k_jit_every : 0);
  std::vector<StackFunction> functions = functions_of(depth, with_jit, registered);
  Measurement measured{{}, &state, &walker, &registered, depth, with_jit};
  Measurement calls{{}, &state, nullptr, &registered, depth, with_jit};
  std::minstd_rand random;
  Stacks stacks(256);
  for (auto& stack : stacks) {
    std::shuffle(functions.begin(), functions.end(), random);
    stack = functions;
    stack.push_back(check);
    run_stack(stack, measured);
    stack.back() = walk_once;
  }
  for (auto _ : state) {
    const double without = seconds_of(stacks, calls);
    state.SetIterationTime(std::max(seconds_of(stacks, measured) - without, 0.0));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(depth * stacks.size()));
}

}  // namespace

void add_walk_benchmarks() {
  static const JitArena arena(k_max_depth / k_jit_every);
  for (const Walker& walker : walkers()) {
    for (const bool with_jit : {false, true}) {
      if (with_jit && !walker.passes_jit_frames) continue;
      for (const std::size_t depth : k_depths) {
        const std::string name = std::string("walk/") + walker.name + (with_jit ? "/jit/" : "/static/");
        benchmark::RegisterBenchmark((name + std::to_string(depth)).c_str(),
                                     [&walker, depth, with_jit](auto& s) { walk(s, walker, depth, with_jit, arena); });
      }
      for (const std::size_t depth : k_unlike_depths) {
        const std::string name = std::string("unlike/") + walker.name + (with_jit ? "/jit/" : "/static/");
        benchmark::RegisterBenchmark((name + std::to_string(depth)).c_str(), [&walker, depth, with_jit](auto& s) {
          walk_unlike(s, walker, depth, with_jit, arena);
        })->UseManualTime();
      }
    }
  }
}

}  // namespace bench
