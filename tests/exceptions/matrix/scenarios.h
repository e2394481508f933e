// Uses of exceptions below code made at run time and in it. Each scenario checks itself.
#pragma once

#include <span>

namespace jitunwind::test {

struct Scenario {
  const char* name;
  void (*run)();
};
std::span<const Scenario> all_scenarios();

/// Those of other files.
void throw_in_threads();

/// Runs one with frames of this kind; "compiled": with none that is made at run time. Says on standard output what was
/// not as it must be; the last line is "ok", and the status 0, if nothing was.
[[noreturn]] void run_scenario(const Scenario& scenario, const char* kind);

}  // namespace jitunwind::test
