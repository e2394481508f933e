// The instructions that a walk takes for a frame of a function that it meets for the first time:
// docs/notes/cold_walks.md has what they are spent on.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace jitunwind::test {
namespace {

/// The walk of few frames has the same begin and end.
double of_a_frame(const std::string& functions) {
  constexpr int k_few = 100, k_many = 300;
  const auto of = [&](int count) {
    return instructions_of("--toggle-collect=walk " NEW_CODE_WORK " " + functions + " " + std::to_string(count));
  };
  const double few = of(k_few), each = (of(k_many) - few) / (k_many - k_few);
  std::printf("%s: %.0f instructions a frame\n", functions.c_str(), each);
  EXPECT_GT(few, 1000);
  return each;
}

TEST(NewCode, OfCompilers) { EXPECT_LT(of_a_frame("compiled 1"), 880); }
TEST(NewCode, InDirectives) { EXPECT_LT(of_a_frame("directives 1000"), 2690); }
TEST(NewCode, InDirectivesOfFourShapes) { EXPECT_LT(of_a_frame("directives 4"), 850); }
TEST(NewCode, InTables) { EXPECT_LT(of_a_frame("tables 1000"), 2190); }
TEST(NewCode, InTablesOfFourShapes) { EXPECT_LT(of_a_frame("tables 4"), 1370); }

}  // namespace
}  // namespace jitunwind::test
