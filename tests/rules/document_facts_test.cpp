// The documents agree with their sources: the picture of the layers with the table of rooms, results with the stored
// ones of the benchmarks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::all_in, jitunwind::test::Groups, jitunwind::test::output_of, jitunwind::test::Pattern;
using rules::k_root;
using rules::SourceFile;
using Lines = std::vector<std::string>;

/// Maps each layer to its rooms, in the order of the table of rooms in docs/architecture.md.
std::map<std::string, Lines> rooms_of_table(const Lines& page) {
  static const Pattern path("`([a-z_]+)/([a-z_]+)/`");
  std::map<std::string, Lines> rooms;
  bool is_table = false;
  for (const std::string& line : page) {
    is_table = line.starts_with("| room |") || (is_table && line.starts_with("|"));
    if (!is_table || !line.starts_with("| `")) continue;
    for (const Groups& found : all_in(line.substr(0, line.find('|', 1)), path)) rooms[found[1]].push_back(found[2]);
  }
  return rooms;
}

/// Does the same for the picture of the layers.
std::map<std::string, Lines> rooms_of_picture(const Lines& page) {
  static const Pattern layer("^  subgraph ([a-z_]+)$"), room("[a-z_]+");
  std::map<std::string, Lines> rooms;
  std::string of;
  for (const std::string& line : page) {
    for (const Groups& found : all_in(line, layer)) of = found[1];
    const std::size_t texts = line.find("[\"");
    if (line == "```") of.clear();
    if (of.empty() || texts == std::string::npos) continue;
    for (const Groups& found : all_in(line.substr(texts), room)) rooms[of].push_back(found[0]);
  }
  return rooms;
}

TEST(DocumentFacts, ThePictureOfTheLayersHasTheRoomsOfTheTable) {
  const Lines page = rules::read_file("docs/architecture.md").lines;
  EXPECT_EQ(rooms_of_table(page).size(), 5u);
  EXPECT_EQ(rooms_of_picture(page), rooms_of_table(page));
}

TEST(DocumentFacts, EveryPictureIsShown) {
  std::string pages;
  for (const SourceFile& page : rules::documents()) pages += rules::joined(page.lines);
  std::size_t pictures = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / "docs/pictures")) {
    if (entry.path().extension() != ".svg") continue;
    ++pictures;
    const std::string named = std::filesystem::relative(entry.path(), k_root / "docs").string() + ")";
    EXPECT_NE(pages.find(named), std::string::npos) << entry.path();
  }
  EXPECT_GE(pictures, 4u);
}

TEST(DocumentFacts, PlotsAreThoseOfTheBaseline) {
  const std::string bench = (k_root / "bench").string(), plots = (k_root / "docs/pictures/benchmarks").string();
  EXPECT_EQ(output_of(bench + "/plots.py --baseline --check " + bench + "/baseline.json " + plots + " 2>&1"), "");
}

/// Returns "0.13 to 0.43": the least and the most, each with two digits, or with all digits beyond 100.
std::string range_of(const std::vector<double>& values) {
  const auto text = [](double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, value < 100 ? "%.2g" : "%.0f", value);
    return std::string(digits);
  };
  if (values.empty()) return "nothing";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return text(*least) == text(*most) ? text(*least) : text(*least) + " to " + text(*most);
}

/// Returns the stored results: "walk/static/10: jitunwind backtrace to nongnu 1.6.2 unw_backtrace" -> 0.433.
std::map<std::string, double> stored_results() {
  static const Pattern entry(R"rx(\s*"([^"]+)": ([0-9.e+-]+),?)rx");
  std::map<std::string, double> results;
  for (const std::string& line : rules::read_file("bench/baseline.json").lines) {
    Groups found;
    if (matches(line, found, entry)) results[found[1]] = std::stod(found[2]);
  }
  return results;
}

/// Finds wrong results in rows of tables that end in: `way` .. | result | `peer` | `rows of the benchmark` |. A target
/// may stand between the first two.
Lines untrue_results(const Lines& lines, const std::map<std::string, double>& stored) {
  static const Pattern row(R"rx(\| [^`|]*`([^`]+)`[^|]*\|(?: [0-9.]+ \|)? ([^|]+) \| `([^`]+)` \| `([^`]+)` \|)rx");
  Lines found;
  for (const std::string& line : lines) {
    Groups cells;
    if (!matches(line, cells, row)) continue;
    const Pattern of_rows("^" + cells[4]);
    std::vector<double> values;
    for (const auto& [key, value] : stored) {
      const std::size_t colon = key.find(": ");
      const std::string way = " " + key.substr(colon + 2, key.find(" to ", colon) - colon - 2);
      if (has_match(key.substr(0, colon), of_rows) && way.ends_with(" " + cells[1]) && key.ends_with(" to " + cells[3]))
        values.push_back(value);
    }
    if (range_of(values) != cells[2]) found.push_back(line + "  stored: " + range_of(values));
  }
  return found;
}

TEST(DocumentFacts, ResultsAreThoseOfTheStoredBenchmarks) {
  const std::map<std::string, double> stored{{"walk/a/1: us fast to them slow", 0.5},
                                             {"walk/a/2: us fast to them slow", 1}};
  EXPECT_TRUE(untrue_results({"| `fast` | 2 | 0.5 to 1 | `them slow` | `walk/a` |"}, stored).empty());
  EXPECT_TRUE(untrue_results({"| as `fast` | 1 | `them slow` | `walk/a/2` |"}, stored).empty());
  EXPECT_EQ(untrue_results({"| `fast` | 2 | 0.6 | `them slow` | `walk/a` |"}, stored).size(), 1u);
  EXPECT_EQ(untrue_results({"| `fast` | 2 | 0.5 | `them slow` | `throw/a` |"}, stored).size(), 1u);
  for (const auto& [path, rows] : {std::pair{"docs/performance.md", 15u}, std::pair{"README.md", 4u}}) {
    const Lines page = rules::read_file(path).lines;
    const Lines found = untrue_results(page, stored_results());
    EXPECT_TRUE(found.empty()) << path << ":\n" << rules::joined(found);
    EXPECT_GT(untrue_results(page, {}).size(), rows) << path << ": rows of the table are recognised";
  }
}

TEST(DocumentFacts, TheReadmeBeginsWithTwoCommands) {
  Lines commands;
  for (const std::string& line : rules::read_file("README.md").lines)
    if (line.rfind("./dev ", 0) == 0 && commands.size() < 2) commands.push_back(line.substr(0, line.find(' ', 6)));
  EXPECT_EQ(commands, (Lines{"./dev demo", "./dev test"}));
}

}  // namespace
