// Code that is only registered takes the same instructions whether there are segments or not.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace jitunwind::test {
namespace {

/// The first segment looks at the folders of all processes that have one. Here there are no others.
double of_registering(const std::string& beside) {
  const TemporaryFolder folder;
  const double each = instructions_of_a_round(REGISTERING_WORK " " + beside, "JITUNWIND_CODE_DIR=" + folder.path());
  std::printf("%s: registered and cancelled in %.1f instructions\n", beside.c_str(), each);
  return each;
}

TEST(RegisteringWork, IsTheSameBesideSegments) {
  const double alone = of_registering("alone");
  EXPECT_GT(alone, 100);
  EXPECT_NEAR(of_registering("beside_segments"), alone, 1);
}

}  // namespace
}  // namespace jitunwind::test
