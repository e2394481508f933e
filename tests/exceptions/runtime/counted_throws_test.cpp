// The instructions of a throw through a function that exceptions meet for the first time: docs/notes/throws.md has what
// they are spent on.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/instructions.h"

namespace jitunwind::test {
namespace {

double of(int functions) {
  return instructions_of("--toggle-collect=pass " COUNTED_THROWS " " + std::to_string(functions));
}

/// Throws through few functions have the same begin.
TEST(CountedThrows, ThroughANewFunction) {
  constexpr int k_few = 100, k_many = 300;
  const double few = of(k_few), each = (of(k_many) - few) / (k_many - k_few);
  std::printf("%.0f instructions a throw\n", each);
  EXPECT_GT(few, 1000);
  EXPECT_LT(each, __GNUC__ > 12 ? 4320 : 4220);  // 4,266 with gcc 16
}

}  // namespace
}  // namespace jitunwind::test
