// Code in the documents comes from the examples, which are built and run: a block marked as C or C++ follows a comment
// that names the file it is cut from, and occurs there line by line.
//
//   <!-- examples/mixed_stack.cpp -->
//   ```cpp
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"

namespace {

using rules::SourceFile;
using Lines = std::vector<std::string>;

std::string trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
}

/// Indentation aside: a block may be cut from inside a function.
bool occurs_in(const Lines& block, const Lines& file) {
  const auto same = [](const std::string& a, const std::string& b) { return trimmed(a) == trimmed(b); };
  return std::search(file.begin(), file.end(), block.begin(), block.end(), same) != file.end();
}

/// "examples/a.cpp" of "<!-- examples/a.cpp -->", else "".
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

TEST(Documentation, CodeComesFromTheTree) {
  const std::string self = "<!-- tests/rules/documentation_test.cpp -->";
  EXPECT_EQ(untrue_blocks({"a.md", {"```cpp", "int x;", "```"}}).size(), 1u);
  EXPECT_EQ(untrue_blocks({"a.md", {self, "```cpp", "int not_there;" + self, "```"}}).size(), 1u);
  EXPECT_EQ(untrue_blocks({"a.md", {self, "```cpp", "  Lines found;", "```"}}).size(), 0u);

  const std::filesystem::path root = JITUNWIND_SOURCE_DIR;
  Lines found;
  for (const char* folder : {"", "docs", "adapters", "examples"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      if (entry.path().extension() != ".md") continue;
      const Lines of_file = untrue_blocks(rules::read_file(std::filesystem::relative(entry.path(), root).string()));
      found.insert(found.end(), of_file.begin(), of_file.end());
    }
  }
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

}  // namespace
