#include "bench/baseline.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

const Ratios k_stored{{"walk/static/10: us to them", 0.5}, {"walk/static/50: us to them", 0.25}};

TEST(Baseline, SaysNothingOfWhatIsAsItWas) {
  EXPECT_EQ(compare_with_baseline(k_stored, k_stored), "");
  EXPECT_EQ(compare_with_baseline(k_stored, {{"walk/static/10: us to them", 0.74}}), "") << "noise, and less measured";
  EXPECT_EQ(compare_with_baseline(k_stored, {}), "");
}

TEST(Baseline, TellsWhatIsSlower) {
  EXPECT_EQ(compare_with_baseline(k_stored, {{"walk/static/10: us to them", 0.8}, {"walk/static/50: us to them", 0.2}}),
            "Slower than the baseline: walk/static/10: us to them: 0.8, was 0.5\n");
}

TEST(Baseline, TellsWhatItDoesNotKnow) {
  EXPECT_EQ(compare_with_baseline(k_stored, {{"walk/static/200: us to them", 0.3}}),
            "Not in the baseline: walk/static/200: us to them: 0.3\n");
  EXPECT_NE(compare_with_baseline(std::nullopt, k_stored).find("no baseline"), std::string::npos);
}

TEST(Baseline, KeepsWhatAFilterLeavesOut) {
  const Ratios some{{"walk/static/10: us to them", 0.4}, {"walk/static/200: us to them", 0.3}};
  EXPECT_EQ(replaced(k_stored, some), (Ratios{{"walk/static/10: us to them", 0.4},
                                              {"walk/static/200: us to them", 0.3},
                                              {"walk/static/50: us to them", 0.25}}));
  EXPECT_EQ(replaced(std::nullopt, some), some);
}

}  // namespace
}  // namespace bench
