// Uses of exceptions below code made at run time and in it. Each scenario checks itself.
#pragma once

#include <span>

namespace jitunwind::test {

struct Scenario {
  const char* name;
  void (*run)();
};
std::span<const Scenario> all_scenarios();

/// Scenarios of other files.
void throw_in_threads();

/// Runs a scenario with frames of this kind; "compiled": without any frame made at run time. Prints failures to
/// standard output; the last line is "ok", and the status 0, if there were none.
[[noreturn]] void run_scenario(const Scenario& scenario, const char* kind);

}  // namespace jitunwind::test
