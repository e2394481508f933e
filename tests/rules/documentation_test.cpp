// Code in the documents comes from the examples, which are built and run: a block marked as C or C++ follows a comment
// that names the file it is cut from, and occurs there line by line.
//
//   <!-- examples/mixed_stack.cpp -->
//   ```cpp
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;
using rules::SourceFile;
using rules::trimmed;
using Lines = std::vector<std::string>;

/// Indentation does not count: a block may be cut from inside a function.
bool occurs_in(const Lines& block, const Lines& file) {
  const auto same = [](const std::string& a, const std::string& b) { return trimmed(a) == trimmed(b); };
  return std::search(file.begin(), file.end(), block.begin(), block.end(), same) != file.end();
}

/// Returns "examples/a.cpp" for "<!-- examples/a.cpp -->", else "".
std::string named_file(const std::string& line) {
  const std::string text = trimmed(line);
  if (text.rfind("<!-- ", 0) != 0 || text.find(" -->") == std::string::npos) return "";
  return text.substr(5, text.find(" -->") - 5);
}

Lines untrue_blocks(const SourceFile& document) {
  Lines found;
  for (std::size_t i = 0; i < document.lines.size(); ++i) {
    const std::string fence = trimmed(document.lines[i]);
    if (fence != "```cpp" && fence != "```c++" && fence != "```c") continue;
    const std::string place = document.path + ":" + std::to_string(i + 1);
    const std::string source = i > 0 ? named_file(document.lines[i - 1]) : "";
    Lines block;
    while (++i < document.lines.size() && trimmed(document.lines[i]) != "```") block.push_back(document.lines[i]);
    if (source.empty()) {
      found.push_back(place + ": no comment names the file this is cut from");
    } else if (!occurs_in(block, rules::read_file(source).lines)) {
      found.push_back(place + ": not in " + source);
    }
  }
  return found;
}

Lines found_in_all(Lines (*rule)(const SourceFile&)) {
  Lines found;
  for (const SourceFile& document : rules::documents()) {
    const Lines of_file = rule(document);
    found.insert(found.end(), of_file.begin(), of_file.end());
  }
  return found;
}

/// Returns the functions and variables that a header of the C interface declares, under the names that programs use.
std::set<std::string> declared_names(const SourceFile& header) {
  static const Pattern declaration(R"(^extern [^(=]*?[ *](UNW_OBJ\()?(\w+)[);(].*)");
  std::set<std::string> names;
  for (const std::string& line : header.lines) {
    Groups found;
    if (!matches(line, found, declaration)) continue;
    std::string name = found[2];
    if (name.rfind("create_addr_space", 0) == 0) name = "unw_create_addr_space";  // for callers of two releases
    if (name.rfind("unw_tdep_", 0) == 0) name = "unw_" + name.substr(9);
    names.insert(name);
  }
  return names;
}

/// Returns the missing parts of a function's page.
Lines gaps_of(const SourceFile& page, const std::string& name) {
  Lines gaps;
  const auto has = [&](const std::string& line) {
    return std::find(page.lines.begin(), page.lines.end(), line) != page.lines.end();
  };
  for (const std::string& line :
       {"# " + name, std::string("## Returns"), std::string("## Safety"), std::string("## Example")})
    if (!has(line)) gaps.push_back(page.path + ": no line \"" + line + "\"");
  const bool compiled = std::any_of(page.lines.begin(), page.lines.end(), [](const std::string& line) {
    return named_file(line).rfind("examples/libunwind/", 0) == 0;
  });
  if (!compiled) gaps.push_back(page.path + ": no example from examples/libunwind, which are built and run");
  return gaps;
}

TEST(Documentation, EveryFunctionOfTheCInterfaceHasItsPage) {
  const std::filesystem::path folder = std::filesystem::path(JITUNWIND_SOURCE_DIR) / "docs/reference";
  const std::string index = rules::joined(rules::read_file("docs/reference/README.md").lines);
  std::size_t pages = 0;
  for (const char* header : {"sdk/compat/include/libunwind-common.h", "sdk/compat/include/libunwind-x86_64.h",
                             "sdk/compat/include/libunwind-aarch64.h", "dyn_info/libunwind-dynamic.h"}) {
    for (const std::string& name : declared_names(rules::read_file(header))) {
      const std::string path = "docs/reference/" + name + ".md";
      ASSERT_TRUE(std::filesystem::exists(folder / (name + ".md"))) << header << ": " << name;
      const Lines gaps = gaps_of(rules::read_file(path), name);
      EXPECT_TRUE(gaps.empty()) << rules::joined(gaps);
      EXPECT_NE(index.find("(" + name + ".md)"), std::string::npos) << name << " is not in the index";
      ++pages;
    }
  }
  EXPECT_GT(pages, 40u);
  EXPECT_EQ(declared_names(
                {"a.h", {"extern int f(void);", "extern int UNW_OBJ(g)(int);", "extern T unw_v;", "int h(void);"}}),
            (std::set<std::string>{"f", "g", "unw_v"}));
  EXPECT_EQ(gaps_of({"a.md", {"# f", "## Returns", "## Safety"}}, "f").size(), 2u);
}

/// Each header for other processes and core files has one page, which names everything in it.
TEST(Documentation, EveryHeaderOfOtherProcessesHasItsPage) {
  const std::string index = rules::joined(rules::read_file("docs/reference/README.md").lines);
  for (const std::string name : {"libunwind-ptrace", "libunwind-coredump"}) {
    const auto declared = declared_names(rules::read_file("sdk/compat/include/" + name + ".h"));
    EXPECT_GT(declared.size(), 10u);
    const SourceFile page = rules::read_file("docs/reference/" + name + ".md");
    const std::string text = rules::joined(page.lines);
    for (const std::string& function : declared)
      EXPECT_NE(text.find("`" + function + "`"), std::string::npos)
          << page.path << " does not say what it does: " << function;
    const Lines gaps = gaps_of(page, name);
    EXPECT_TRUE(gaps.empty()) << rules::joined(gaps);
    EXPECT_NE(index.find("(" + name + ".md)"), std::string::npos) << name << " is not in the index";
  }
}

TEST(Documentation, CodeComesFromTheTree) {
  const std::string self = "<!-- tests/rules/documentation_test.cpp -->";
  EXPECT_EQ(untrue_blocks({"a.md", {"```cpp", "int x;", "```"}}).size(), 1u);
  EXPECT_EQ(untrue_blocks({"a.md", {self, "```cpp", "int not_there;" + self, "```"}}).size(), 1u);
  EXPECT_EQ(untrue_blocks({"a.md", {self, "```cpp", "  Lines found;", "```"}}).size(), 0u);
  const Lines found = found_in_all(untrue_blocks);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

}  // namespace
