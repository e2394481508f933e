// Walks while another thread registers and cancels without pause. They are compared with walks while that thread only
// computes, since a second busy thread may slow the machine down.
#include <benchmark/benchmark.h>

#include <array>
#include <string>

#include "bench/busy.h"
#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::size_t k_depth = 50;
constexpr std::size_t k_jit_every = 4;
constexpr std::size_t k_on_stack = k_depth / k_jit_every + 1;
constexpr std::size_t k_churned = 256;

enum class Churn { other_pages, neighbours };
constexpr const char* name_of(Churn churn) { return churn == Churn::other_pages ? "other_pages" : "neighbours"; }

struct ContendedWalk : Context {
  benchmark::State* state;
  const Walker* walker;
};

void measure(Context* context) {
  auto& contended = *static_cast<ContendedWalk*>(context);
  std::array<void*, k_depth> addresses;
  for (auto _ : *contended.state) benchmark::DoNotOptimize(contended.walker->walk(addresses));
  contended.state->SetItemsProcessed(contended.state->iterations() * static_cast<std::int64_t>(k_depth));
}

/// Registers and cancels functions in turn.
struct Churner {
  Registrar* registrar;
  std::size_t first, count;
  std::size_t next = 0;

  void operator()() {
    registrar->register_function(first + next);
    registrar->cancel_function(first + next);
    next = (next + 1) % count;
  }
};

/// The functions on the stack are the arena's first ones. The next functions are their neighbours, and the last ones
/// are far away.
void walk(benchmark::State& state, const Walker& walker, Churn churn, bool quiet) {
  static const JitArena arena(k_on_stack + 100 * k_churned);
  const Registered registered(arena, k_on_stack, arena.functions().size());
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < k_depth; ++i)
    functions.push_back(i % k_jit_every == k_jit_every - 1 ? registered.entry(i / k_jit_every) : static_function(i));
  functions.push_back(measure);
  ContendedWalk contended{{}, &state, &walker};
  if (quiet) {
    const Busy spinning([value = 1u]() mutable { benchmark::DoNotOptimize(value = value * 1664525 + 1013904223); });
    run_stack(functions, contended);
  } else {
    const std::size_t first = churn == Churn::neighbours ? k_on_stack : arena.functions().size() - k_churned;
    const Busy churning(Churner{registrars().front(), first, churn == Churn::neighbours ? k_on_stack : k_churned});
    run_stack(functions, contended);
  }
}

}  // namespace

void add_contention_benchmarks() {
  for (const Walker& walker : walkers()) {
    // Some register nothing while they are measured.
    if (!walker.passes_jit_frames || !registrars().front()->can_find()) continue;
    for (const Churn churn : {Churn::other_pages, Churn::neighbours}) {
      for (const bool quiet : {false, true}) {
        const std::string name =
            std::string("contention/") + walker.name + (quiet ? ", nothing changes/" : "/") + name_of(churn);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&walker, churn, quiet](auto& state) { walk(state, walker, churn, quiet); });
      }
    }
  }
}

}  // namespace bench
