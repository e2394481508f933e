// The cost of jitunwind_jit.h, in instructions: three for each call without the library, and at most a tenth more than
// the C interface if there is one.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/command.h"

namespace {

double instructions(const std::string& environment, const std::string& work, int count) {
  const std::string output = jitunwind::test::output_of(
      environment + " " VALGRIND " --tool=callgrind --callgrind-out-file=/dev/null " COUNTED " " + work + " " +
      std::to_string(count) + " 2>&1");
  const std::string mark = "Collected : ";
  const auto at = output.find(mark);
  if (at == std::string::npos) {
    ADD_FAILURE() << output;
    return 0;
  }
  return std::stod(output.substr(at + mark.size()));
}

/// Returns the instructions of one round. The program's own start is in every number, but not in the difference.
double of_one(const std::string& environment, const std::string& work) {
  constexpr int k_few = 1000, k_many = 3000;
  return (instructions(environment, work, k_many) - instructions(environment, work, k_few)) / (k_many - k_few);
}

TEST(JitHeaderCosts, ThreeInstructionsWithoutTheLibrary) {
  const double nothing = of_one("JITUNWIND=0", "nothing");
  for (const char* work : {"wanted", "announce", "take_back", "moved", "forget", "allocate", "commit", "release"})
    EXPECT_NEAR(of_one("JITUNWIND=0", work) - nothing, 3, 0.2) << work;
}

TEST(JitHeaderCosts, ATenthMoreThanTheInterface) {
  for (const std::string of : {"", "_alone", "_of_one"}) {
    const double header = of_one("", "header" + of), interface = of_one("", "interface" + of);
    std::printf("announcing%s: %.0f instructions, registering: %.0f, %.3f of it\n", of.c_str(), header, interface,
                header / interface);
    EXPECT_GT(interface, 100);
    EXPECT_LE(header, 1.1 * interface);
  }
}

}  // namespace
