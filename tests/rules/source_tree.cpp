#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rules {

using jitunwind::test::Groups, jitunwind::test::Pattern;

namespace {

constexpr std::array k_folders{"unwind_core", "dyn_info", "builders", "sdk", "adapters", "examples", "tests", "bench"};
constexpr std::array k_extensions{".h", ".cpp", ".c", ".S", ".def"};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string SourceFile::folder() const { return path.substr(0, path.find('/')); }
bool SourceFile::has_extension(const char* extension) const { return ends_with(path, extension); }
bool SourceFile::is_private() const { return is_of_one_layer() || is_internal(); }
bool SourceFile::is_of_one_layer() const { return ends_with(path, "_p.h"); }
bool SourceFile::is_internal() const { return ends_with(path, "_internal.h"); }

SourceFile read_file(const std::string& path) {
  std::ifstream in(k_root / path);
  if (!in) throw std::runtime_error("cannot read " + path);
  SourceFile file{path, {}};
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

std::vector<SourceFile> source_files() {
  std::vector<SourceFile> files;
  for (const char* folder : k_folders) {
    if (!std::filesystem::exists(k_root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / folder)) {
      const std::string path = std::filesystem::relative(entry.path(), k_root).string();
      for (const char* extension : k_extensions) {
        if (entry.is_regular_file() && ends_with(path, extension)) files.push_back(read_file(path));
      }
    }
  }
  return files;
}

std::vector<SourceFile> documents() {
  std::vector<SourceFile> files;
  const auto take = [&](const std::filesystem::directory_entry& entry) {
    if (entry.path().extension() == ".md")
      files.push_back(read_file(std::filesystem::relative(entry, k_root).string()));
  };
  for (const auto& entry : std::filesystem::directory_iterator(k_root)) take(entry);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / "docs")) take(entry);
  for (const char* folder : k_folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / folder)) take(entry);
  return files;
}

std::string included_file(const std::string& line) {
  static const Pattern include(R"(\s*#\s*include\s*["<]([^">]+)[">].*)");
  Groups match;
  return matches(line, match, include) ? match[1] : "";
}

std::string trimmed(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
}

std::string joined(const std::vector<std::string>& findings) {
  std::string text;
  for (const std::string& finding : findings) text += finding + "\n";
  return text;
}

}  // namespace rules
