// Work whose instructions a simulator counts: the same work a given number of times. Nothing else depends on that
// number.
#include "bench/measurements.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "bench/stack.h"

namespace bench {

namespace {

constexpr std::size_t k_depth = 50;
constexpr std::size_t k_new_functions = 40;
constexpr std::size_t k_registered = 1000;

struct RepeatedWalk : Context {
  const Walker* walker;
  std::size_t times;
};

void walk_repeatedly(Context* context) {
  const auto& repeated = *static_cast<const RepeatedWalk*>(context);
  std::array<void*, k_depth> addresses;
  for (std::size_t i = 0; i < repeated.times; ++i)
    if (repeated.walker->walk(addresses) != k_depth) std::exit(3);
}

void walk(const Walker& walker, std::size_t times) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < k_depth; ++i) functions.push_back(static_function(i));
  functions.push_back(walk_repeatedly);
  RepeatedWalk repeated{{}, &walker, times};
  run_stack(functions, repeated);
}

void walk_once(Context* context) {
  std::array<void*, k_new_functions> addresses;
  if (static_cast<const RepeatedWalk*>(context)->walker->walk(addresses) != k_new_functions) std::exit(3);
}

/// Walks through other functions each time. One more walk comes first, whatever `times` is, and sets up what stays.
void walk_new_functions(const Walker& walker, std::size_t times) {
  RepeatedWalk once{{}, &walker, 1};
  for (std::size_t i = 0; i <= times; ++i) {
    std::vector<StackFunction> functions;
    for (std::size_t k = 0; k < k_new_functions; ++k) functions.push_back(static_function(i * k_new_functions + k));
    functions.push_back(walk_once);
    run_stack(functions, once);
  }
}

void register_and_cancel(Registrar& registrar, std::size_t times) {
  static const JitArena arena(k_registered);
  registrar.prepare(arena.functions());
  for (std::size_t i = 0; i < times; ++i)
    registrar.register_function(i % k_registered), registrar.cancel_function(i % k_registered);
}

void throw_one(Context*) { throw 1; }

void throw_repeatedly(StackFunction (*function)(std::size_t), std::size_t times) {
  std::vector<StackFunction> functions;
  for (std::size_t i = 0; i < k_depth; ++i) functions.push_back(function(i));
  functions.push_back(throw_one);
  for (std::size_t i = 0; i < times; ++i) {
    Context context{};
    try {
      run_stack(functions, context);
    } catch (int) {
    }
  }
}

struct Counted {
  std::size_t items;  ///< in each repetition
  std::function<void(std::size_t)> repeat;
  std::size_t most = SIZE_MAX;  ///< repetitions: the functions are not more
};

std::map<std::string, Counted> all() {
  std::map<std::string, Counted> counted;
  for (const Walker& walker : walkers()) {
    const std::string name = std::string("instructions/") + walker.name;
    counted[name + "/walk/a frame"] = {k_depth, [&](std::size_t n) { walk(walker, n); }};
    counted[name + "/walk/a frame of a new function"] = {
        k_new_functions, [&](std::size_t n) { walk_new_functions(walker, n); }, k_max_depth / k_new_functions - 1};
  }
  for (Registrar* const registrar : registrars())
    counted[std::string("instructions/") + registrar->name() + "/register/and cancel"] = {
        1, [=](std::size_t n) { register_and_cancel(*registrar, n); }};
  const std::string name = std::string("instructions/") + thrower() + "/throw/through a frame";
  counted[name] = {k_depth, [](std::size_t n) { throw_repeatedly(&static_function, n); }};
  counted[name + " with a destructor"] = {k_depth,
                                          [](std::size_t n) { throw_repeatedly(&static_function_with_destructor, n); }};
  return counted;
}

}  // namespace

int count(const std::string& name, std::size_t times) {
  const auto counted = all();
  if (name.empty()) {
    for (const auto& [each, what] : counted) std::printf("%zu %s\n", what.items, each.c_str());
    return 0;
  }
  const auto found = counted.find(name);
  if (found == counted.end()) {
    std::fprintf(stderr, "nothing that is counted is called '%s'\n", name.c_str());
    return 2;
  }
  if (times > found->second.most) {
    std::fprintf(stderr, "%s: at most %zu times\n", name.c_str(), found->second.most);
    return 2;
  }
  found->second.repeat(times);
  return 0;
}

}  // namespace bench
