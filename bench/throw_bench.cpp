// The time of one exception that is thrown at the end of a stack and caught at its beginning. The stack consists of C++
// functions, or every fourth function is made at run time. Many other procedures are registered, or none.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "bench/busy.h"
#include "bench/measurements.h"
#include "bench/registered.h"
#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::array<std::size_t, 4> k_depths{1, 10, 50, 200};
constexpr std::array<std::size_t, 4> k_others{0, 1000, 100'000, 1'000'000};
constexpr std::size_t k_jit_every = 4;
constexpr std::size_t k_on_stack = 64;
constexpr int k_beside = 10'000;

enum class Kind { plain, destructors, jit };
constexpr const char* name_of(Kind kind) {
  return kind == Kind::plain ? "static/" : kind == Kind::destructors ? "destructors/" : "jit/";
}

void throw_one(Context*) { throw 1; }

/// Functions made at run time. The first k_on_stack are for stacks, the others are only registered.
const JitArena& arena(std::size_t others) {
  static std::unique_ptr<JitArena> made;
  const std::size_t count = k_on_stack + others;
  if (!made || made->functions().size() < count) made = std::make_unique<JitArena>(count);
  return *made;
}

std::vector<StackFunction> stack(std::size_t depth, Kind kind, const Registered& registered) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < depth; ++i) {
    // The only function of a stack of depth 1 is made at run time, too.
    const bool jit = kind == Kind::jit && i % k_jit_every == std::min(depth, k_jit_every) - 1;
    const auto of_cpp = kind == Kind::destructors ? static_function_with_destructor : static_function;
    functions.push_back(jit ? registered.entry(i / k_jit_every) : of_cpp(i));
  }
  functions.push_back(throw_one);
  return functions;
}

bool throw_and_catch(const std::vector<StackFunction>& functions) {
  Context context{};
  try {
    run_stack(functions, context);
  } catch (int) {
    return true;
  }
  return false;
}

void throws(benchmark::State& state, std::size_t depth, Kind kind, std::size_t others) {
  const JitArena& made = arena(others);
  const Registered registered(made, kind == Kind::jit || others != 0 ? k_on_stack + others : 0);
  const std::vector<StackFunction> functions = stack(depth, kind, registered);
  if (!throw_and_catch(functions)) return state.SkipWithError("not caught");
  for (auto _ : state) benchmark::DoNotOptimize(throw_and_catch(functions));
  state.SetItemsProcessed(state.iterations());
}

void first_throw(benchmark::State& state, std::size_t others) {
  const JitArena& made = arena(others);
  (void)throw_and_catch(stack(1, Kind::plain, Registered(made, 0)));
  for (auto _ : state) {
    state.PauseTiming();
    auto registered = std::make_unique<Registered>(made, k_on_stack + others);
    const std::vector<StackFunction> functions = stack(1, Kind::jit, *registered);
    state.ResumeTiming();
    benchmark::DoNotOptimize(throw_and_catch(functions));
    state.PauseTiming();
    registered.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations());
}

/// Measures elapsed time, since a thread that waits for a lock takes no other.
void throw_beside(benchmark::State& state, bool other_throws) {
  const JitArena& made = arena(0);
  const Registered registered(made, k_on_stack);
  const std::vector<StackFunction> functions = stack(1, Kind::jit, registered);
  (void)throw_and_catch(functions);
  const auto measure = [&] {
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < k_beside; ++i) benchmark::DoNotOptimize(throw_and_catch(functions));
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  };
  if (other_throws) {
    const Busy throwing([&] { (void)throw_and_catch(functions); });
    measure();
  } else {
    const Busy computing([value = 1u]() mutable { benchmark::DoNotOptimize(value = value * 1664525 + 1013904223); });
    measure();
  }
  state.SetItemsProcessed(state.iterations() * k_beside);
}

}  // namespace

void add_throw_benchmarks(std::size_t max_functions) {
  const Registrar& registrar = *registrars().front();
  for (const bool other_throws : {true, false}) {
    const std::string name = std::string("throw_beside/") + thrower() + (other_throws ? "" : ", other computes") + "/1";
    benchmark::RegisterBenchmark(name.c_str(), [=](auto& state) { throw_beside(state, other_throws); })
        ->UseManualTime()
        ->Iterations(3);
  }
  for (const std::size_t others : k_others) {
    if (others > std::min(max_functions, registrar.max_functions())) continue;
    for (const Kind kind : {Kind::plain, Kind::destructors, Kind::jit}) {
      for (const std::size_t depth : k_depths) {
        const std::string name = std::string("throw/") + thrower() + "/" + name_of(kind) + std::to_string(depth) + "/" +
                                 std::to_string(others);
        benchmark::RegisterBenchmark(name.c_str(), [=](auto& state) { throws(state, depth, kind, others); });
      }
    }
    const std::string name = std::string("first_throw/") + thrower() + "/" + std::to_string(others);
    benchmark::RegisterBenchmark(name.c_str(), [=](auto& state) { first_throw(state, others); })->Iterations(3);
  }
}

}  // namespace bench
