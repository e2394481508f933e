// The text of a table about its targets.
#include "bench/report.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

const Contender k_ours{"ours", "way"};
const Contender k_other{"other", "way"};

/// Returns the last cell of the only row.
std::string said_of(const Results& results, const Target& target) {
  return results.table({"", "row/10", k_ours, {target}}).cells.back().back();
}

Results measured() {
  Results results;
  for (const std::size_t round : {0u, 1u, 2u}) {
    // The machine has another speed in each round.
    const double speed = 1 + static_cast<double>(round);
    results.add("row/10", k_ours, round, 30 * speed);
    results.add("row/10", k_other, round, 40 * speed);
    results.add("row/1", k_ours, round, 20 * speed);
  }
  return results;
}

TEST(Report, FiltersSelectByNameAndByRow) {
  const std::string name = "through_new/jitunwind-eh/directives/1000/iterations:20/manual_time";
  EXPECT_EQ(MeasurementName(name).row, "through_new/directives/1000");
  EXPECT_EQ(MeasurementName(name).way, "jitunwind-eh");
  for (const char* const filter : {".", "through_", "/jitunwind-eh/", "through_new/[dt].*/1000$", "^through_new/dir"})
    EXPECT_TRUE(is_selected(name, filter)) << filter;
  for (const char* const filter : {"through_new/[dt].*/100$", "through_again", "directives/eh"})
    EXPECT_FALSE(is_selected(name, filter)) << filter;
  EXPECT_EQ(MeasurementName("check_fdes/way").row, "check_fdes");
}

TEST(Report, ComparesWithinARound) {
  EXPECT_EQ(said_of(measured(), {k_ours, k_other, 0.8}), "0.75 of other way (0.8)");
  EXPECT_EQ(said_of(measured(), {k_ours, k_other, 0.7}), "0.75 of other way (0.7)!");
  EXPECT_EQ(said_of(measured(), {k_ours, k_other, 0.8, "row/1"}), "") << "of another row";
  EXPECT_EQ(said_of(measured(), {k_ours, {"nobody", ""}, 0.8}), "");
}

TEST(Report, ComparesWithTimes) {
  EXPECT_EQ(said_of(measured(), {k_ours, k_time, 60}), "60 ns (60)");
  EXPECT_EQ(said_of(measured(), {k_ours, k_time, 50}), "60 ns (50)!");
  EXPECT_EQ(said_of(measured(), {k_ours, k_page_faults, 50}), "60 page faults (50)!");
}

TEST(Report, ComparesRows) {
  EXPECT_EQ(said_of(measured(), {k_ours, k_ours, 1.6, ".*", "row/1"}), "1.5 of row/1 (1.6)");
  EXPECT_EQ(said_of(measured(), {k_ours, k_ours, 1.4, ".*", "row/1"}), "1.5 of row/1 (1.4)!");
  EXPECT_EQ(said_of(measured(), {k_ours, k_ours, 1.4, ".*", "row/2"}), "") << "not measured";
}

/// A repeated contender shows how much a difference means. It has no column of its own.
TEST(Report, ShowsWhatIsRunAgainAsASpread) {
  Results results = measured();
  for (const std::size_t round : {0u, 1u, 2u})
    results.add("row/10", {again("ours"), "way"}, round, 33 * (1 + static_cast<double>(round)));
  const Table table = results.table({"", "row/", k_ours});
  EXPECT_EQ(table.cells.front(), (std::vector<std::string>{"", "ours", "other", "the same", "target"}));
  EXPECT_EQ(table.cells.at(2).at(3), "1.10x-1.10x");
  EXPECT_EQ(results.lines("row/").size(), 2u);
}

/// Times are no ratios, and cannot be compared with another machine's.
TEST(Report, KeepsRatiosAlone) {
  const auto ratios = measured().target_ratios(
      {{"", "row/10", k_ours, {{k_ours, k_other, 1}, {k_ours, k_time, 1}, {k_ours, k_ours, 1, ".*", "row/1"}}}});
  EXPECT_EQ(ratios, (std::map<std::string, double>{{"row/10: ours way to other way", 0.75},
                                                   {"row/10: ours way to ours way of row/1", 1.5}}));
}

}  // namespace
}  // namespace bench
