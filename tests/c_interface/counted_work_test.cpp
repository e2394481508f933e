// The cost of the C interface over the C++ one, in instructions: at most a tenth for a registration, and nothing for a
// step (a hundredth is room for another compiler).
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/command.h"

namespace {

double instructions(const std::string& work, int count) {
  const std::string output =
      jitunwind::test::output_of(VALGRIND " --tool=callgrind --callgrind-out-file=/dev/null " COUNTED_WORK " " + work +
                                 " " + std::to_string(count) + " 2>&1");
  const std::string mark = "Collected : ";
  const auto at = output.find(mark);
  if (at == std::string::npos) {
    ADD_FAILURE() << output;
    return 0;
  }
  return std::stod(output.substr(at + mark.size()));
}

/// Returns the instructions of one round. The program's own start is in every number, but not in the difference.
double of_one(const std::string& work) {
  constexpr int k_few = 1000, k_many = 3000;
  return (instructions(work, k_many) - instructions(work, k_few)) / (k_many - k_few);
}

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
