// Reports of the storm's run-time code in a target that a tracer walks: the first wrong result ends the target.
#include <errno.h>

#include <cstdio>
#include <cstdlib>

#include "tests/prove/storm_threads.h"

namespace jitunwind::storm {
namespace {
constinit Counters all_counters;
}

Counters& counters() noexcept { return all_counters; }
void count_wrong(const char* what) noexcept {
  std::fprintf(stderr, "%s: the target: %s\n", program_invocation_short_name, what);
  std::abort();
}

}  // namespace jitunwind::storm
