// docs/conformance.md and the comments of the tests say the same: "// covers: LU10" above a test names a row, and the
// page names, for each row, the files that do.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;

/// Row -> files, relative to tests/.
using Claims = std::map<std::string, std::set<std::string>>;

std::set<std::string> rows_in(const std::string& text) {
  static const Pattern row("\\b[A-Z]{2}[0-9]+\\b");
  std::set<std::string> rows;
  for (const Groups& it : all_in(text, row)) rows.insert(it[0]);
  return rows;
}

/// Comments directly above a test count, with nothing but comments and blank lines between.
void add_claims(const rules::SourceFile& file, const std::string& name, Claims& claims) {
  static const Pattern test("\\s*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|add_test|[a-z_]+_test)\\s*\\(.*");
  static const Pattern comment("\\s*((//|#|\\*).*)?");
  static const Pattern claim("\\s*(//|#) covers: .*");
  std::set<std::string> pending;
  for (const std::string& line : file.lines) {
    if (matches(line, claim)) {
      pending.merge(rows_in(line));
    } else if (matches(line, test)) {
      for (const std::string& row : pending) claims[row].insert(name);
      pending.clear();
    } else if (!matches(line, comment)) {
      pending.clear();
    }
  }
}

Claims claims_of_tests() {
  Claims claims;
  const std::filesystem::path root = std::filesystem::path(JITUNWIND_SOURCE_DIR) / "tests";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".c" && entry.path().filename() != "CMakeLists.txt") continue;
    const std::string name = std::filesystem::relative(entry.path(), root).string();
    add_claims(rules::read_file("tests/" + name), name, claims);
  }
  return claims;
}

/// Lines "| LU10 | what | `walk/cursor_test.cpp`, ... |".
Claims claims_of_page() {
  static const Pattern row("\\| ([A-Z]{2}[0-9]+) \\|[^|]*\\|([^|]*)\\|");
  static const Pattern file("`([^`]+)`");
  Claims claims;
  for (const std::string& line : rules::read_file("docs/conformance.md").lines) {
    Groups match;
    if (!matches(line, match, row)) continue;
    for (const Groups& it : all_in(match[2], file)) claims[match[1]].insert(it[1]);
  }
  return claims;
}

std::string missing_from(const Claims& some, const Claims& all, const char* where) {
  std::string text;
  for (const auto& [row, files] : all)
    for (const std::string& file : files) {
      const auto found = some.find(row);
      if (found == some.end() || !found->second.contains(file)) text += row + " " + file + ": not in " + where + "\n";
    }
  return text;
}

TEST(Conformance, PageAndTestsAgree) {
  const Claims tests = claims_of_tests(), page = claims_of_page();
  EXPECT_GT(tests.size(), 90u);
  EXPECT_EQ(missing_from(page, tests, "docs/conformance.md"), "");
  EXPECT_EQ(missing_from(tests, page, "the tests"), "");
}

}  // namespace
