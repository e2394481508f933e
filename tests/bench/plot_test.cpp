#include "bench/plot.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

TEST(Plot, LeavesOutWhatHasNoPlaceOnLogarithmicAxes) {
  const std::string drawn = svg_plot("title", "number", {{"of none, too", {{0, 5}, {1000, 20}}}});
  EXPECT_NE(drawn.find("</svg>"), std::string::npos);
  EXPECT_EQ(drawn.find("inf"), std::string::npos);
  EXPECT_EQ(drawn.find("nan"), std::string::npos);
  EXPECT_EQ(svg_plot("title", "number", {{"of none", {{0, 5}}}}), "");
}

}  // namespace
}  // namespace bench
