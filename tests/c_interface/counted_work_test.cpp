// The cost of the C interface over the C++ one, in instructions: at most a tenth for a registration, and nothing for a
// step (a hundredth is room for another compiler).
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace {

double of_one(const std::string& work) { return jitunwind::test::instructions_of_a_round(COUNTED_WORK " " + work); }

TEST(CCosts, OfARegistration) {
  const double in_cpp = of_one("register in_cpp"), in_c = of_one("register in_c");
  std::printf("register and cancel: %.0f instructions in C++, %.0f in C, %.3f of it\n", in_cpp, in_c, in_c / in_cpp);
  EXPECT_GT(in_cpp, 100);
  EXPECT_LE(in_c, 1.1 * in_cpp);
}

TEST(CCosts, OfAStep) {
  const double in_cpp = of_one("step in_cpp") / 20, in_c = of_one("step in_c") / 20;
  std::printf("step: %.1f instructions in C++, %.1f in C\n", in_cpp, in_c);
  EXPECT_GT(in_cpp, 10);
  EXPECT_LE(in_c, 1.01 * in_cpp);
}

}  // namespace
