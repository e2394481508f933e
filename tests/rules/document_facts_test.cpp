// The documents agree with their sources: pictures with their descriptions, results with the stored ones of the
// benchmarks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::output_of, jitunwind::test::Pattern;
using rules::k_root;
using rules::SourceFile;
using Lines = std::vector<std::string>;

/// Returns the exit status of docs/draw.py, and its output in `text`.
int draw(const std::string& arguments, std::string& text) {
  const std::string script = (k_root / "docs/draw.py").string();
  const std::string output = output_of("{ python3 " + script + " " + arguments + "; echo $?; } 2>&1");
  const std::size_t last = output.find_last_of('\n', output.size() - 2);
  text = last == std::string::npos ? "" : output.substr(0, last);
  return std::stoi(output.substr(last == std::string::npos ? 0 : last + 1));
}

/// Draws a description that is alone in a folder, and returns the error.
std::string refusal_of(const std::string& description) {
  char path[] = "/tmp/pictures-XXXXXX";
  const std::filesystem::path folder = mkdtemp(path);
  std::ofstream(folder / "one.txt") << description;
  std::string text;
  const int status = draw("--check " + folder.string(), text);
  std::filesystem::remove_all(folder);
  return status == 0 ? "" : text;
}

TEST(DocumentFacts, PicturesAreWhatTheirDescriptionsSay) {
  std::string text;
  EXPECT_EQ(draw("--check", text), 0) << text;
}

TEST(DocumentFacts, PicturesThatCannotBeReadAreNoticed) {
  const std::string begin = "title \"t\"\nsize 30 20\nbox a 2 2 8 4 plain \"a\"\n";
  EXPECT_NE(refusal_of(begin).find("is not what one.txt says"), std::string::npos);
  EXPECT_NE(refusal_of(begin + "box b 5 5 8 4 plain b").find("b overlaps a"), std::string::npos);
  EXPECT_NE(refusal_of(begin + "box b 12 2 4 4 plain \"too long\"").find("\"too long\" needs"), std::string::npos);
  EXPECT_NE(
      refusal_of(begin + "box b 12 2 4 4 plain b\nbox c 20 2 4 4 plain c\narrow a right c left").find("crosses b"),
      std::string::npos);
  EXPECT_NE(refusal_of(begin + "text 3 3 left words").find("\"words\" lies on a"), std::string::npos);
  EXPECT_NE(refusal_of(begin + "box b 25 2 8 4 plain b").find("b is not on the picture"), std::string::npos);
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
