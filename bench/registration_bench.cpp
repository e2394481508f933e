// Registering and cancelling procedures one by one, and the cost of lookups while they are registered.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/measurements.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

namespace bench {

namespace {

constexpr std::array<std::size_t, 4> k_counts{1000, 10'000, 100'000, 1'000'000};
constexpr std::size_t k_hot = 64;
/// The number of functions that a large JIT cancels at its end, in any order.
constexpr std::size_t k_many_taken_back = 40'000;
// The number of changes is fixed, because peers that register fast may cancel a thousand times slower, and that time is
// not part of the measurement.
constexpr std::size_t k_changes = 50'000;

/// `alone` means random order without overlap between one change and the next.
enum class Order { sequential, random, alone };
constexpr const char* name_of(Order order) {
  return order == Order::sequential ? "/sequential" : order == Order::random ? "/random" : "/alone";
}
enum class Measured { registering, cancelling };

/// Different seeds give different random orders. If procedures were cancelled in the order of registration, each would
/// be at the end of a list.
std::vector<std::size_t> indices(std::size_t count, Order order, std::uint64_t seed) {
  std::vector<std::size_t> all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (order != Order::sequential) std::shuffle(all.begin(), all.end(), std::mt19937_64(count + seed));
  return all;
}

/// A barrier: no later instruction begins before all earlier ones are done. Otherwise a processor overlaps the cache
/// misses of a dozen changes. It does so only if each change has few instructions, as those of a list have, and if it
/// has nothing else to do.
void finish() {
#ifdef __x86_64__
  __builtin_ia32_lfence();  // Intel SDM 2, LFENCE
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

template <class Change>
void for_each(std::span<const std::size_t> indices, Order order, Change change) {
  for (const std::size_t i : indices) {
    change(i);
    if (order == Order::alone) finish();
  }
}

template <class Action>
double seconds(Action action) {
  const double begin = thread_seconds();
  action();
  return thread_seconds() - begin;
}

/// The functions of the largest measurement so far. Smaller measurements use the first of them.
std::span<const JitFunction> functions(std::size_t count) {
  static std::unique_ptr<JitArena> arena;
  if (!arena || arena->functions().size() < count) arena = std::make_unique<JitArena>(count);
  return arena->functions().first(count);
}

void change(benchmark::State& state, Registrar& registrar, std::size_t count, Order order, Measured measured) {
  registrar.prepare(functions(count));
  const std::vector<std::size_t> in = indices(count, order, 1);
  const std::vector<std::size_t> out = indices(count, order, 2);
  for (auto _ : state) {
    const double registering =
        seconds([&] { for_each(in, order, [&](std::size_t i) { registrar.register_function(i); }); });
    const double cancelling =
        seconds([&] { for_each(out, order, [&](std::size_t i) { registrar.cancel_function(i); }); });
    state.SetIterationTime(measured == Measured::registering ? registering : cancelling);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void first_lookup(benchmark::State& state, Registrar& registrar, std::size_t count) {
  const std::span<const JitFunction> all = functions(count);
  registrar.prepare(all);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) registrar.register_function(i);
    bool found = false;
    state.SetIterationTime(seconds([&] { found = registrar.find(all[count / 2].code + 1); }));
    for (std::size_t i = 0; i < count; ++i) registrar.cancel_function(i);
    if (!found) state.SkipWithError("a registered procedure was not found");
  }
  state.SetItemsProcessed(state.iterations());
}

void lookup(benchmark::State& state, Registrar& registrar, std::size_t count, bool of_jit) {
  const std::span<const JitFunction> all = functions(count);
  registrar.prepare(all);
  for (std::size_t i = 0; i < count; ++i) registrar.register_function(i);
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < k_hot; ++i) {
    const void* code = reinterpret_cast<const void*>(static_function(i));
    addresses.push_back(of_jit ? all[i * (count / k_hot)].code + 1 : static_cast<const std::byte*>(code) + 1);
  }
  std::size_t found = 0;
  for (const void* pc : addresses) found += registrar.find(pc) ? 1u : 0u;
  if (found != k_hot) state.SkipWithError("not all procedures were found");
  for (auto _ : state) {
    for (const void* pc : addresses) benchmark::DoNotOptimize(registrar.find(pc));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(k_hot));
  for (std::size_t i = 0; i < count; ++i) registrar.cancel_function(i);
}

/// `iterations` is for measurements that take the time themselves; 0 leaves the number to Google Benchmark.
void add(const std::string& what, const Registrar& registrar, const std::string& how, std::size_t count,
         const std::function<void(benchmark::State&)>& run, std::size_t iterations) {
  const std::string name = what + "/" + registrar.name() + how + "/" + std::to_string(count);
  auto* added = benchmark::RegisterBenchmark(name.c_str(), run);
  if (iterations > 0) added->UseManualTime()->Iterations(static_cast<benchmark::IterationCount>(iterations));
}

}  // namespace

void add_registration_benchmarks(std::size_t max_functions) {
  for (Registrar* const registrar : registrars()) {
    if (k_many_taken_back <= std::min(max_functions, registrar->max_functions()))
      add(
          "cancel", *registrar, name_of(Order::random), k_many_taken_back,
          [=](benchmark::State& s) { change(s, *registrar, k_many_taken_back, Order::random, Measured::cancelling); },
          1);
    for (const std::size_t count : k_counts) {
      if (count > std::min(max_functions, registrar->max_functions())) continue;
      for (const Order order : {Order::sequential, Order::random, Order::alone}) {
        for (const Measured measured : {Measured::registering, Measured::cancelling}) {
          add(
              measured == Measured::registering ? "register" : "cancel", *registrar, name_of(order), count,
              [=](benchmark::State& s) { change(s, *registrar, count, order, measured); },
              std::max(k_changes / count, std::size_t{1}));
        }
      }
      if (!registrar->can_find()) continue;
      add(
          "first_lookup", *registrar, "", count, [=](benchmark::State& s) { first_lookup(s, *registrar, count); }, 1);
      for (const bool of_jit : {true, false}) {
        add(
            of_jit ? "lookup_jit" : "lookup_static", *registrar, "", count,
            [=](benchmark::State& s) { lookup(s, *registrar, count, of_jit); }, 0);
      }
    }
  }
}

}  // namespace bench
