// The work of describing, adding and throwing through a procedure grows as its size does: a procedure ten times as
// large takes as many of the processor's instructions for each of its own.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/instructions.h"

namespace {

std::vector<std::string> kinds() { return jitunwind::test::lines_of(jitunwind::test::output_of(LARGE_WORK)); }

class Work : public testing::TestWithParam<std::string> {};

/// The program's own start is in every number, but not in the differences.
TEST_P(Work, GrowsWithTheSize) {
#ifdef PROOF
  const std::vector<std::size_t> sizes{1'000, 10'000, 100'000};
#else
  const std::vector<std::size_t> sizes{300, 1'000, 10'000};
#endif
  std::vector<double> counted;
  for (const std::size_t size : sizes) {
    counted.push_back(jitunwind::test::instructions_of(LARGE_WORK " " + GetParam() + " " + std::to_string(size)));
    ASSERT_GT(counted.back(), 0) << size;
  }
  const auto each = [&](std::size_t i) {
    return (counted[i] - counted[i - 1]) / static_cast<double>(sizes[i] - sizes[i - 1]);
  };
  std::printf("%s: %.0f instructions each up to %zu, %.0f up to %zu\n", GetParam().c_str(), each(1), sizes[1], each(2),
              sizes[2]);
  EXPECT_LT(each(2), 1.25 * each(1));
}

INSTANTIATE_TEST_SUITE_P(Large, Work, testing::ValuesIn(kinds()), [](const auto& info) { return info.param; });

TEST(Large, KindsAreThere) { EXPECT_GE(kinds().size(), 5u); }

}  // namespace
