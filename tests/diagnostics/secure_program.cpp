// Prints whether the kernel tells this process not to trust its environment, the bits of the words in it, and whether
// the library keeps rows.
#include <sys/auxv.h>

#include <array>
#include <cstdio>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/environment.h"

/// LeakSanitizer traces the process that it checks, and a process that changed its user may not be traced.
extern "C" int __lsan_is_turned_off() { return 1; }

int main() {
  constexpr std::array<std::string_view, 1> k_known{"walk"};
  std::printf("secure %lu words %u keeps %s\n", ::getauxval(AT_SECURE),
              jitunwind::environment_words("JITUNWIND_WORDS", k_known),
              jitunwind::local_space().row_cache ? "rows" : "nothing");
  return 0;
}
