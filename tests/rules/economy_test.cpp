// The size of the product, and of what a reader has to know of it. Each figure may fall; what raises one has to say in
// its commit what the reader gets for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"

namespace {

using rules::SourceFile;

/// Returns the library's files that are code or tables of it.
std::vector<SourceFile> product_files() {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  for (const char* layer : {"unwind_core", "dyn_info", "builders", "sdk", "adapters"})
    for (const auto& entry : fs::recursive_directory_iterator(rules::k_root / layer)) {
      static const std::set<fs::path> code{".h", ".cpp", ".S", ".py", ".rs", ".def"};
      if (!entry.is_regular_file() || !code.contains(entry.path().extension())) continue;
      files.push_back(rules::read_file(fs::relative(entry.path(), rules::k_root).string()));
    }
  return files;
}

/// Counts the rows of the table below this heading of a document.
std::size_t rows_below(const std::string& document, const std::string& heading) {
  std::size_t rows = 0;
  bool is_below = false;
  for (const std::string& line : rules::read_file(document).lines) {
    if (line.starts_with("## ")) is_below = line == heading;
    if (is_below && line.starts_with("| ")) ++rows;
    if (is_below && rows != 0 && line.empty()) break;
  }
  return rows == 0 ? 0 : rows - 1;  // without the head
}

TEST(Economy, FiguresOnlyFall) {
  constexpr std::size_t k_lines = 86'588, k_files = 598, k_small_files = 79, k_caches = 26;
  const std::vector<SourceFile> files = product_files();
  std::size_t lines = 0;
  for (const SourceFile& file : files) lines += file.lines.size();
  EXPECT_GT(lines, 50'000u);
  EXPECT_LE(lines, k_lines);
  EXPECT_LE(files.size(), k_files);
  EXPECT_LE(std::ranges::count_if(files, [](const SourceFile& file) { return file.lines.size() < 40; }), k_small_files);
  const std::size_t caches = rows_below("docs/caches.md", "## Everything that is kept");
  EXPECT_GT(caches, 10u);
  EXPECT_LE(caches, k_caches);
}

}  // namespace
