// The cost of jitunwind_jit.h, in instructions: three for each call without the library, and at most 7 % more than
// the C interface if there is one.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace {

double of_one(const std::string& environment, const std::string& work) {
  return jitunwind::test::instructions_of_a_round(COUNTED " " + work, environment);
}

TEST(JitHeaderCosts, ThreeInstructionsWithoutTheLibrary) {
  const double nothing = of_one("JITUNWIND=0", "nothing");
  for (const char* work : {"wanted", "announce", "take_back", "moved", "forget", "allocate", "commit", "release"}) {
    const double each = of_one("JITUNWIND=0", work) - nothing;
    EXPECT_GT(each, 1.8) << work;  // gcc 16 compares in memory
    EXPECT_LT(each, 3.2) << work;
  }
}

TEST(JitHeaderCosts, LittleMoreThanTheInterface) {
  for (const std::string of : {"", "_alone", "_of_one"}) {
    const double header = of_one("", "header" + of), interface = of_one("", "interface" + of);
    std::printf("announcing%s: %.0f instructions, registering: %.0f, %.3f of it\n", of.c_str(), header, interface,
                header / interface);
    EXPECT_GT(interface, 100);
    EXPECT_LE(header, (of == "_of_one" ? 0.9 : 1.07) * interface);  // its marks need no builder
  }
}

}  // namespace
