// Instructions of a program that has the core alone, beside those of one that has everything in an archive: a fiftieth
// more is allowed, for calls between libraries.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace {

class CoreCosts : public testing::TestWithParam<const char*> {};

TEST_P(CoreCosts, AreThoseOfTheWholeLibrary) {
  const std::string what = std::string(" ") + GetParam();
  const double alone = jitunwind::test::instructions_of_a_round(COUNTED_CORE + what);
  const double whole = jitunwind::test::instructions_of_a_round(COUNTED_WHOLE + what);
  std::printf("%s: %.0f instructions with the core, %.0f with everything\n", GetParam(), alone, whole);
  EXPECT_GT(whole, 100);
  EXPECT_LE(alone, 1.02 * whole);
}

INSTANTIATE_TEST_SUITE_P(Work, CoreCosts, testing::Values("walk", "step", "throw"),
                         [](const auto& at) { return std::string(at.param); });

}  // namespace
