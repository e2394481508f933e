// Prints whether the kernel says that this process is not to trust its environment, and the bits of the words in it.
#include <sys/auxv.h>

#include <array>
#include <cstdio>

#include "jitunwind/unwind_core/environment.h"

int main() {
  constexpr std::array<std::string_view, 1> k_known{"walk"};
  std::printf("secure %lu words %u\n", ::getauxval(AT_SECURE),
              jitunwind::environment_words("JITUNWIND_WORDS", k_known));
  return 0;
}
