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

std::vector<SourceFile> script_files() {
  std::vector<SourceFile> files;
  const auto take = [&](const std::filesystem::directory_entry& entry) {
    if (!entry.is_regular_file()) return;
    const std::string path = std::filesystem::relative(entry.path(), k_root).string();
    const SourceFile named{path, {}};
    const bool is_named =
        ends_with(path, "CMakeLists.txt") || named.has_extension(".cmake") || named.has_extension(".py");
    if (!is_named && entry.path().has_extension()) return;
    const SourceFile file = read_file(path);
    if (is_named || (!file.lines.empty() && file.lines.front().starts_with("#!"))) files.push_back(file);
  };
  for (const auto& entry : std::filesystem::directory_iterator(k_root)) take(entry);
  for (const char* folder : k_folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / folder)) take(entry);
  for (const char* folder : {".ci", "cmake", "docs"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(k_root / folder)) take(entry);
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

Rooms documented_rooms() {
  static const Pattern row(R"(\| ((?:`\w+/[^`]*` )+)\| [^|]+ \| (-|`[^|]+`) \|)"), quoted("`([^`]+)`");
  Rooms rooms;
  std::size_t place = 0;
  for (const std::string& line : read_file("docs/architecture.md").lines) {
    Groups match;
    if (!matches(line, match, row)) continue;
    Room room{++place, {}};
    for (const Groups& layer : all_in(match[2], quoted)) room.layers.insert(layer[1]);
    for (const Groups& each : all_in(match[1], quoted)) rooms[each[1]] = room;
  }
  return rooms;
}

const Room* room_of(const std::string& path, const Rooms& rooms) {
  const std::size_t first = path.find('/'), second = path.find('/', first + 1);
  const std::string folder = path.substr(0, (second == std::string::npos ? first : second) + 1);
  for (const std::string& name : {path.substr(0, path.rfind('.')) + ".h", folder})
    if (const auto room = rooms.find(name); room != rooms.end()) return &room->second;
  return nullptr;
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
