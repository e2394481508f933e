// Walks while another thread registers and cancels without pause.
#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::size_t k_depth = 50;
constexpr std::size_t k_jit_every = 4;
constexpr std::size_t k_on_stack = k_depth / k_jit_every + 1;
constexpr std::size_t k_churned = 256;

enum class Churn { quiet, other_pages, neighbours };
constexpr const char* name_of(Churn churn) {
  return churn == Churn::quiet ? "quiet" : churn == Churn::other_pages ? "other_pages" : "neighbours";
}

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

/// Registers and cancels functions, one after the other, until it is destroyed.
class Churner {
 public:
  Churner(Registrar& registrar, std::size_t first, std::size_t count)
      : thread_([this, &registrar, first, count] {
          for (std::size_t i = 0; !done_.load(std::memory_order_relaxed); i = (i + 1) % count) {
            registrar.register_function(first + i);
            registrar.cancel_function(first + i);
          }
        }) {}
  ~Churner() {
    done_ = true;
    thread_.join();
  }
  Churner(const Churner&) = delete;
  Churner& operator=(const Churner&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// The functions on the stack are the arena's first; those behind them are their neighbours, the last are far away.
void walk(benchmark::State& state, const Walker& walker, Churn churn) {
  static const JitArena arena(k_on_stack + 100 * k_churned);
  const Registered registered(arena, k_on_stack, arena.functions().size());
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < k_depth; ++i)
    functions.push_back(i % k_jit_every == k_jit_every - 1 ? arena.entry(i / k_jit_every) : static_function(i));
  functions.push_back(measure);
  ContendedWalk contended{{}, &state, &walker};
  if (churn == Churn::quiet) {
    run_stack(functions, contended);
  } else {
    const std::size_t first = churn == Churn::neighbours ? k_on_stack : arena.functions().size() - k_churned;
    const Churner churner(*registrars().front(), first, churn == Churn::neighbours ? k_on_stack : k_churned);
    run_stack(functions, contended);
  }
}

}  // namespace

void add_contention_benchmarks() {
  for (const Walker& walker : walkers()) {
    if (!walker.passes_jit_frames) continue;
    for (const Churn churn : {Churn::quiet, Churn::other_pages, Churn::neighbours}) {
      const std::string name = std::string("contention/") + walker.name + "/" + name_of(churn);
      benchmark::RegisterBenchmark(name.c_str(), [&walker, churn](auto& state) { walk(state, walker, churn); });
    }
  }
}

}  // namespace bench
