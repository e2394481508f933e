// The headers that users compile: <jitunwind/jitunwind.h> includes no internals. Private headers stay in their layer,
// and a room's face is used by the layers that docs/architecture.md names.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"

namespace {

using rules::k_prefix;

using Names = std::set<std::string>;

/// Returns the path of an included header of the project; "" for others.
std::string source_of(const std::string& included) {
  if (included.rfind(k_prefix, 0) != 0) return "";
  const std::string name = included.substr(k_prefix.size());
  if (name == "version.h") return "sdk/version.h.in";
  return name.find('/') == std::string::npos ? "sdk/include/" + included : name;
}

/// Collects files by path: the header, and everything of the project that it includes.
void add_with_includes(const std::string& path, std::map<std::string, rules::SourceFile>& files) {
  if (files.count(path) != 0) return;
  const rules::SourceFile& file = files.emplace(path, rules::read_file(path)).first->second;
  for (const std::string& line : file.lines) {
    const std::string included = source_of(rules::included_file(line));
    if (!included.empty()) add_with_includes(included, files);
  }
}

/// Standard headers that take long to compile, and that no public declaration needs.
bool is_costly(const std::string& included) {
  static const Names costly{"algorithm", "atomic", "deque", "functional", "iostream", "iterator",     "map",
                            "memory",    "mutex",  "regex", "set",        "sstream",  "unordered_map"};
  return costly.count(included) != 0;
}

TEST(PublicHeader, BringsAlongNoPlumbing) {
  // Lines with their comments. Both figures may fall; what raises them has to say why it must be seen by users.
  // 7 lines for vector registers in a ucontext_t: cursors take it over inline.
  // 2 lines for relocations of data: what is to be known of a CPU is in its table.
  // 5 lines: interfaces of the engine say that nobody owns an object by them; a frame that catches cleans up so, too.
  // 4 lines for .ARM.exidx: frames say that it told of them, and modules where it is.
  // 10 lines for kinds of signal frames and the halves of vector registers: what is to be known of a CPU, likewise.
  // Some lines for the table of x86, which is a machine by itself: frames of sigreturn.
  // One line for modules that are known to be code as a whole.
  // 33 lines for signed return addresses: their keys are a CPU's, a row's and a space's; a written pc is signed as
  // well.
  // 8 lines for what the kernel says of a fault: what is to be known of a CPU, likewise.
  // 4 lines for <cstdint>, which newer standard libraries do not bring along.
  // 18 lines for registers that a callee has left alone: steps that are inline put them aside for rules.
  // 2 lines for a page that the kernel emulates: what is to be known of a CPU, likewise.
  // A file, and 145 lines with those around it, for marks: they are recorded without a call.
  // 2 lines for descriptions under another name: functions of a compiler share one, and each has its name.
  // 2 files, and 94 lines with them, for the lists of registers, which the tables of x86-64 and AArch64 read as well.
  // 5 lines for sources that have rows of either form: a compact one is an answer, and no member of the question.
  // 55 lines for marks that have an entry state, and that are judged as build() does if JITUNWIND_CHECK asks for it.
  // 5 lines for the numbers of registers in directives, which are looked up without a call.
  constexpr std::size_t k_most_files = 42, k_most_lines = 3924;
  std::map<std::string, rules::SourceFile> files;
  add_with_includes("sdk/include/jitunwind/jitunwind.h", files);
  std::size_t lines = 0;
  Names plumbing;
  for (const auto& [path, file] : files) {
    lines += file.lines.size();
    if (file.is_private()) plumbing.insert(path);
    for (const std::string& line : file.lines)
      if (is_costly(rules::included_file(line))) plumbing.insert(path + ": " + line);
  }
  EXPECT_EQ(plumbing, Names{});
  EXPECT_GT(files.size(), 20u);
  EXPECT_LE(files.size(), k_most_files);
  EXPECT_LE(lines, k_most_lines);
}

using IsSuch = bool (rules::SourceFile::*)() const;

/// Returns "layer includes header" for such headers of other layers.
Names includes_of_others(const std::vector<rules::SourceFile>& files, IsSuch is_such) {
  static const Names layers{"unwind_core", "dyn_info", "builders", "sdk", "adapters"};
  Names found;
  for (const rules::SourceFile& file : files) {
    if (layers.count(file.folder()) == 0) continue;
    for (const std::string& line : file.lines) {
      const rules::SourceFile header{source_of(rules::included_file(line)), {}};
      if ((header.*is_such)() && header.folder() != file.folder())
        found.insert(file.folder() + " includes " + header.path);
    }
  }
  return found;
}

TEST(PrivateHeaders, AreIncludedByTheirOwnLayerOnly) {
  const std::string include = "#include ";
  constexpr IsSuch is_such = &rules::SourceFile::is_of_one_layer;
  EXPECT_EQ(includes_of_others({{"sdk/a.cpp", {include + "\"jitunwind/unwind_core/b_p.h\""}}}, is_such),
            Names{"sdk includes unwind_core/b_p.h"});
  EXPECT_EQ(includes_of_others({{"sdk/a.cpp", {include + "\"jitunwind/sdk/b_p.h\""}}}, is_such), Names{});
  EXPECT_EQ(includes_of_others({{"sdk/a.cpp", {include + "\"jitunwind/unwind_core/b_internal.h\""}}}, is_such),
            Names{});
  EXPECT_EQ(includes_of_others({{"sdk/a.cpp", {include + "\"jitunwind/unwind_core/b.h\""}}}, is_such), Names{});
  EXPECT_EQ(includes_of_others(rules::source_files(), is_such), Names{});
}

/// Returns "layer includes of place" for rooms by their places in the table, whose headers other layers include.
Names faces(const std::vector<rules::SourceFile>& files, const rules::Rooms& rooms) {
  Names found;
  for (const std::string& name : includes_of_others(files, &rules::SourceFile::is_internal)) {
    const rules::Room* const room = rules::room_of(name.substr(name.rfind(' ') + 1), rooms);
    found.insert(name.substr(0, name.find(' ')) + " includes of " + (room ? std::to_string(room->place) : "no room"));
  }
  return found;
}

TEST(InternalHeaders, AreTheFacesOfRoomsForTheLayersThatTheArchitectureNames) {
  const std::string include = "#include \"jitunwind/unwind_core/b/c_internal.h\"";
  EXPECT_EQ(faces({{"sdk/a.cpp", {include}}}, {{"unwind_core/b/", {3, {}}}}), Names{"sdk includes of 3"});
  const rules::Rooms rooms = rules::documented_rooms();
  Names documented;
  for (const auto& [name, room] : rooms)
    for (const std::string& layer : room.layers)
      documented.insert(layer + " includes of " + std::to_string(room.place));
  EXPECT_GT(documented.size(), 20u);
  EXPECT_EQ(faces(rules::source_files(), rooms), documented);
}

/// Other headers are private to their layer.
TEST(InternalHeaders, AreThoseThatAnotherLayerIncludes) {
  const std::vector<rules::SourceFile> files = rules::source_files();
  std::string included;
  for (const std::string& name : includes_of_others(files, &rules::SourceFile::is_internal)) included += name + '\n';
  for (const rules::SourceFile& file : files) {
    if (!file.is_internal()) continue;
    EXPECT_NE(included.find(' ' + file.path + '\n'), std::string::npos) << file.path;
  }
}

}  // namespace
