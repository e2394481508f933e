// Cold work in code that is scattered over a megabyte in three modules: the program, a library that it names, and one
// that it has opened. A process can be cold only once, so a run makes one of these measurements.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/resource.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/measurements.h"
#include "bench/stack.h"
#include "bench/thread_time.h"

extern "C" {
extern const bench::StackFunction scattered_in_program[];
extern const bench::StackFunction scattered_in_library[];
}

namespace bench {

namespace {

constexpr std::size_t k_functions = 1400;  // of each module
constexpr std::size_t k_modules = 3;

const StackFunction* scattered_in_opened() {
  void* const handle = ::dlopen(SCATTERED_OPENED, RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(::dlerror());
  return static_cast<const StackFunction*>(::dlsym(handle, "scattered_in_opened"));
}

/// Returns `count` functions of all modules in turn, in no order of addresses.
std::vector<StackFunction> functions(std::size_t count) {
  static const StackFunction* const modules[k_modules]{scattered_in_program, scattered_in_library,
                                                       scattered_in_opened()};
  constexpr std::size_t k_stride = 611;  // without a common divisor
  std::vector<StackFunction> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(modules[i % k_modules][i / k_modules * k_stride % k_functions]);
  return all;
}

/// The cost of some work for this thread.
struct Cost {
  double seconds;
  long page_faults;
};

Cost now() {
  rusage usage;
  ::getrusage(RUSAGE_THREAD, &usage);
  return {thread_seconds(), usage.ru_minflt};
}

Cost cost_of(const std::function<void()>& work) {
  const Cost before = now();
  work();
  const Cost after = now();
  return {after.seconds - before.seconds, after.page_faults - before.page_faults};
}

/// Runs `work` with these functions on the stack.
void run_below(std::vector<StackFunction> stack, const std::function<void()>& work) {
  struct Below : Context {
    const std::function<void()>* work;
  } below{{}, &work};
  stack.push_back([](Context* context) { (*static_cast<Below*>(context)->work)(); });
  run_stack(stack, below);
}

enum class Unit { time, page_faults };

/// An item is a frame; for page faults it is the whole walk.
void report(benchmark::State& state, Unit unit, std::size_t frames, const Cost& cost) {
  for (auto _ : state)
    state.SetIterationTime(unit == Unit::time ? cost.seconds : static_cast<double>(cost.page_faults) * 1e-9 + 1e-12);
  state.SetItemsProcessed(unit == Unit::time ? static_cast<std::int64_t>(frames) : 1);
}

struct Measurement {
  const char* name;
  std::size_t frames;
  bool warmed;  ///< a walk of other functions of the same modules comes first
  bool again;   ///< the second walk of the same stack
};
constexpr Measurement k_measurements[]{
    {"scattered_first", 50, false, false}, {"scattered_second", 50, false, true}, {"scattered_new", 10, true, false},
    {"scattered_new", 50, true, false},    {"scattered_new", 120, true, false},   {"scattered_new", 400, true, false},
    {"scattered_new", 4000, true, false},
};

void measure(benchmark::State& state, const Walker& walker, const Measurement& what, Unit unit) {
  std::vector<void*> addresses(what.frames);
  std::size_t found = 0;
  const auto walk = [&] { found = walker.walk(addresses); };
  if (what.warmed) {
    std::vector<StackFunction> others = functions(k_modules * k_functions);
    others.erase(others.begin(), others.end() - k_modules);
    for (std::size_t i = 0; i < 50; ++i) others.push_back(static_function(i));
    run_below(others, walk);
  }
  Cost cost{};
  const std::vector<StackFunction> stack = functions(what.frames);
  // A first run excludes the costs of the stack's memory and of the first look at the clock.
  run_below(stack, [] { (void)cost_of([] {}); });
  run_below(stack, [&] {
    if (what.again) walk();
    cost = cost_of(walk);
  });
  if (found != what.frames) state.SkipWithError(("only " + std::to_string(found) + " frames").c_str());
  report(state, unit, what.frames, cost);
}

std::vector<StackFunction> functions_with_destructors(std::size_t count) {
  std::vector<StackFunction> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_function_with_destructor(i));
  return all;
}

void first_throw(benchmark::State& state, const std::vector<StackFunction>& stack, Unit unit) {
  run_below(stack, [] { (void)cost_of([] {}); });
  bool caught = false;
  const Cost cost = cost_of([&] {
    try {
      run_below(stack, [] { throw 1; });
    } catch (int) {
      caught = true;
    }
  });
  if (!caught) state.SkipWithError("not caught");
  report(state, unit, 1, cost);
}

const char* suffix_of(Unit unit) { return unit == Unit::time ? "/" : "_faults/"; }

void add(const std::string& name, const std::function<void(benchmark::State&)>& measurement) {
  benchmark::RegisterBenchmark(name.c_str(), measurement)->UseManualTime()->Iterations(1);
}

}  // namespace

void add_scattered_benchmarks() {
  for (const Unit unit : {Unit::time, Unit::page_faults}) {
    for (const Walker& walker : walkers()) {
      // The walk along frame pointers does not see functions that keep none.
      if (!walker.passes_jit_frames) continue;
      for (const Measurement& what : k_measurements)
        add(what.name + (suffix_of(unit) + std::string(walker.name)) + "/" + std::to_string(what.frames),
            [&walker, &what, unit](benchmark::State& state) { measure(state, walker, what, unit); });
    }
  }
}

void add_first_throw_benchmarks() {
  for (const Unit unit : {Unit::time, Unit::page_faults})
    for (const std::size_t depth : {10u, 50u, 200u}) {
      const std::string suffix = suffix_of(unit) + std::string(thrower()) + "/" + std::to_string(depth);
      add("scattered_throw" + suffix, [=](auto& state) { first_throw(state, functions(depth), unit); });
      add("cleaning_throw" + suffix, [=](auto& state) { first_throw(state, functions_with_destructors(depth), unit); });
    }
}

}  // namespace bench
