// The time to walk the innermost `depth` frames of a stack. All are C++ functions, or every fourth is made at run time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::array<std::size_t, 4> k_depths{10, 50, 200, 1000};
constexpr std::size_t k_jit_every = 4;

/// The data of the deepest function. The base Context comes first, because frames pass on its address.
struct Measurement : Context {
  benchmark::State* state;
  const Walker* walker;
  const JitArena* arena;
  std::size_t depth;
  bool with_jit;
};

/// Returns "" when the walk saw every frame that it should have seen.
std::string mistake(const Measurement& measured, std::span<void* const> found) {
  if (found.size() != measured.depth) return "only " + std::to_string(found.size()) + " frames";
  const auto jit = std::count_if(found.begin(), found.end(), [&](void* pc) { return measured.arena->contains(pc); });
  const auto expected = measured.with_jit ? static_cast<std::ptrdiff_t>(measured.depth / k_jit_every) : 0;
  // The walker's own frames take places at the inner end.
  if (jit > expected + 1 || jit + 2 < expected) return "wrong frames: " + std::to_string(jit) + " JIT frames";
  std::vector<void*> distinct(found.begin(), found.end());
  std::sort(distinct.begin(), distinct.end());
  if (std::unique(distinct.begin(), distinct.end()) != distinct.end()) return "wrong frames: one address twice";
  return "";
}

void measure(Context* context) {
  auto& measured = *static_cast<Measurement*>(context);
  std::array<void*, k_max_depth> addresses;
  const std::span<void*> into(addresses.data(), measured.depth);
  const std::string wrong = mistake(measured, into.first(measured.walker->walk(into)));
  if (!wrong.empty()) return measured.state->SkipWithError(wrong.c_str());
  for (auto _ : *measured.state) benchmark::DoNotOptimize(measured.walker->walk(into));
  measured.state->SetItemsProcessed(measured.state->iterations() * static_cast<std::int64_t>(measured.depth));
}

void walk(benchmark::State& state, const Walker& walker, std::size_t depth, bool with_jit, const JitArena& arena) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < depth; ++i) {
    const bool jit = with_jit && i % k_jit_every == k_jit_every - 1;
    functions.push_back(jit ? arena.entry(i / k_jit_every) : static_function(i));
  }
  functions.push_back(measure);
  const Registered registered(arena, with_jit ? depth / k_jit_every : 0);
  Measurement measured{{}, &state, &walker, &arena, depth, with_jit};
  run_stack(functions, measured);
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
    }
  }
}

}  // namespace bench
