// Walks in a process with hundreds of libraries, each frame in another one. A process makes one measurement.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "bench/busy.h"
#include "bench/libraries/many_libraries.h"
#include "bench/measurements.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

namespace bench {

namespace {

constexpr std::size_t k_loaded = MANY_LIBRARIES_COUNT - 1;  // the last one is loaded and unloaded
constexpr std::array<std::size_t, 2> k_depths{50, k_loaded - k_loaded % 100};

enum class When { first, again, while_loading };
constexpr const char* name_of(When when) {
  return when == When::first   ? "first_walk_libraries/"
         : when == When::again ? "walk_libraries/"
                               : "walk_while_loading/";
}

struct LibraryWalk : Context {
  benchmark::State* state;
  const Walker* walker;
  std::size_t depth;
  When when;
};

void measure(Context* context) {
  auto& measured = *static_cast<LibraryWalk*>(context);
  std::array<void*, k_max_depth> addresses;
  const std::span<void*> into(addresses.data(), measured.depth);
  std::size_t found = measured.depth;
  if (measured.when == When::first) {
    for (auto _ : *measured.state) {
      const double begin = thread_seconds();
      found = measured.walker->walk(into);
      measured.state->SetIterationTime(thread_seconds() - begin);
    }
  } else {
    found = measured.walker->walk(into);
    for (auto _ : *measured.state) benchmark::DoNotOptimize(measured.walker->walk(into));
  }
  if (found != measured.depth) measured.state->SkipWithError(("only " + std::to_string(found) + " frames").c_str());
  measured.state->SetItemsProcessed(measured.state->iterations() * static_cast<std::int64_t>(measured.depth));
}

void walk(benchmark::State& state, const Walker& walker, std::size_t depth, When when) {
  const std::vector<LoadedLibrary> libraries = load_libraries(k_loaded);
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < depth; ++i) functions.push_back(libraries[i * (k_loaded / depth)].function());
  functions.push_back(measure);
  LibraryWalk measured{{}, &state, &walker, depth, when};
  if (when == When::while_loading) {
    const Busy loading([] { const LoadedLibrary another(k_loaded); });
    run_stack(functions, measured);
  } else {
    run_stack(functions, measured);
  }
}

}  // namespace

void add_library_benchmarks() {
  for (const Walker& walker : walkers()) {
    // The walk along frame pointers does not see frames in libraries that keep none.
    if (!walker.passes_jit_frames) continue;
    for (const When when : {When::first, When::again, When::while_loading}) {
      for (const std::size_t depth : k_depths) {
        const std::string name = name_of(when) + std::string(walker.name) + "/" + std::to_string(depth);
        auto* const added = benchmark::RegisterBenchmark(
            name.c_str(), [&walker, depth, when](benchmark::State& state) { walk(state, walker, depth, when); });
        if (when == When::first) added->UseManualTime()->Iterations(1);
      }
    }
  }
}

}  // namespace bench
