// The program that is debugged. It registers COUNT procedures one by one, calls some, and cancels all. bench_debugged
// COUNT FILE writes seconds to the file: "register 0.01", "cancel 0.01". Its stops are for in_debugger.py.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "bench/describe.h"
#include "bench/jit_arena.h"

using bench::JitFunction;

extern "C" {
// The debugger sets breakpoints in these functions.
[[gnu::noinline]] void all_registered() { asm volatile(""); }
[[gnu::noinline]] void deep_inside() { asm volatile(""); }
[[gnu::noinline]] void all_cancelled() { asm volatile(""); }

/// Waits for a line, so that a debugger can attach here.
[[gnu::noinline]] void called_from_jit(bench::Context*) {
  char line;
  while (::read(STDIN_FILENO, &line, 1) == 1 && line != '\n') {
  }
  deep_inside();
}
}

namespace {

template <class Action>
void measure(std::FILE* into, const char* what, Action action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::fprintf(into, "%s %g\n", what, took.count());
  std::fflush(into);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto count = static_cast<std::size_t>(std::atol(argv[1]));
  std::FILE* const file = std::fopen(argv[2], "w");
  if (file == nullptr) return 1;
  const bench::JitArena arena(count);
  std::vector<jitunwind::Description> descriptions;
  for (std::size_t i = 0; i < count; ++i)
    descriptions.push_back(bench::describe(arena.functions()[i], "jit_" + std::to_string(i)));

  std::vector<jitunwind::Registration> all;
  all.reserve(count);
  measure(file, "register", [&] {
    for (std::size_t i = 0; i < count; ++i) {
      const JitFunction& function = arena.functions()[i];
      all.push_back(jitunwind::register_code(descriptions[i], function.code, function.size).value());
    }
  });
  all_registered();
  for (std::size_t i = 0; i < 3; ++i) {
    const bench::StackFunction next[] = {arena.entry(i * (count / 3) + 1), called_from_jit};
    bench::Context context{next};
    arena.entry(i * (count / 3))(&context);
  }
  std::shuffle(all.begin(), all.end(), std::mt19937_64(count));
  measure(file, "cancel", [&] { all.clear(); });
  std::fclose(file);
  all_cancelled();
}
