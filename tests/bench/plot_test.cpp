#include "bench/plot.h"
#include "tests/support/texts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench {
namespace {

TEST(Plot, LeavesOutWhatHasNoPlaceOnLogarithmicAxes) {
  const std::string drawn = svg_plot("title", "number", {{"of none, too", {{0, 5}, {1000, 20}}}});
  EXPECT_NE(drawn.find("</svg>"), std::string::npos);
  EXPECT_EQ(drawn.find("inf"), std::string::npos);
  EXPECT_EQ(drawn.find("nan"), std::string::npos);
  EXPECT_EQ(svg_plot("title", "number", {{"of none", {{0, 5}}}}), "");
}

/// Colour, width and dashes of each curve, in the order of the lines.
std::vector<std::string> strokes_of(const std::string& drawn) {
  std::vector<std::string> strokes;
  for (const auto& found : jitunwind::test::all_in(drawn, "<polyline fill=\"none\" (.*) points="))
    strokes.push_back(found[1]);
  return strokes;
}

TEST(Plot, ShowsReleasesOfAnUnwinderInOneColourWithTheNewestSolid) {
  const std::vector<std::pair<double, double>> points{{1, 1}, {10, 2}};
  const auto strokes = strokes_of(svg_plot("title", "number",
                                           {{"libgcc 12 libgcc_s", points},
                                            {"libgcc 14 libgcc_s", points},
                                            {"libgcc 16 libgcc_s", points},
                                            {"nongnu 1.8.1 unw_step", points}}));
  ASSERT_EQ(strokes.size(), 4u);
  EXPECT_EQ(strokes[0], strokes[2] + " stroke-dasharray=\"1 3 \"");
  EXPECT_EQ(strokes[1], strokes[2] + " stroke-dasharray=\"4 3 \"");
  EXPECT_EQ(strokes[3].find("dash"), std::string::npos);
  EXPECT_NE(strokes[3], strokes[2]);
}

TEST(Plot, TellsMoreKindsApartThanThereAreColours) {
  std::vector<Line> lines;
  for (char name = 'a'; name < 'a' + 12; ++name) lines.push_back({std::string(1, name), {{1, 1}, {10, 2}}});
  auto strokes = strokes_of(svg_plot("title", "number", lines));
  std::sort(strokes.begin(), strokes.end());
  EXPECT_EQ(std::unique(strokes.begin(), strokes.end()) - strokes.begin(), 12);
}

}  // namespace
}  // namespace bench
