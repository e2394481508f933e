// docs/c.md "Which C++ function is which C function" is complete: it has every function of the C++ headers that it is
// about, every function of the C headers, and no others. Every C function has a comment, and is exported.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/c_interface/every_function.h"
#include "tests/rules/source_tree.h"
#include "tests/support/command.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::output_of, jitunwind::test::Pattern, jitunwind::test::text_of_file;
using Names = std::set<std::string>;

/// Finds the public functions that a C++ header declares, by their indentation, including those of classes.
Names declared_in_cpp(const rules::SourceFile& header) {
  static const Pattern opens(R"((?:class|struct|namespace|enum)\b.*)"), access(R"( (public|private):)");
  static const Pattern function(
      R"( {0,2}(?:\[\[[^\]]*\]\] ?|template ?<[^>]*> ?|static |inline |explicit |constexpr |extern "C" )*)"
      R"([A-Za-z_][\w:<>,&* ]*?[ &*](\w+)\(.*)");
  static const Names no_functions{"requires", "return", "operator", "static_assert", "visibility", "volatile"};
  Names found;
  bool is_private = false;
  for (const std::string& whole : header.lines) {
    const std::string line = whole.substr(0, whole.find("//"));
    Groups match;
    if (matches(line, opens) || line.rfind("};", 0) == 0) is_private = false;
    if (matches(line, match, access)) is_private = match[1] == "private";
    if (is_private || !matches(line, match, function)) continue;
    if (no_functions.count(match[1]) == 0) found.insert(match[1]);
  }
  return found;
}

/// Maps the name of each declared function, "ju_push" of "ju_status ju_push(...", to whether a comment precedes it.
std::map<std::string, bool> declared_in_c() {
  static const Pattern function(R"((?:static inline )?(?:const )?\w+\*? (ju_\w+|jitunwind_\w+)\(.*)");
  std::map<std::string, bool> found;
  for (const rules::SourceFile& file : rules::source_files()) {
    if (file.path.rfind("sdk/c/", 0) != 0 || !file.has_extension(".h") || file.is_private()) continue;
    for (std::size_t i = 1; i < file.lines.size(); ++i) {
      Groups match;
      if (!matches(file.lines[i], match, function)) continue;
      const std::string& before = file.lines[i - 1];
      const bool commented = before.ends_with("*/") || before.rfind("#ifdef __cplusplus", 0) == 0 || before == "#else";
      found[match[1]] = commented;
    }
  }
  return found;
}

/// The page: for each header the quoted names on the left, and all C functions that are named.
struct Page {
  std::map<std::string, Names> of_cpp;
  Names of_c;
};

Page read_page(const std::vector<std::string>& lines) {
  static const Pattern title(R"(### `([^`]+)`)"), quoted("`([^`]+)`"), c_name(R"(ju_\w+)");
  Page page;
  std::string header;
  for (const std::string& line : lines) {
    Groups match;
    if (line.rfind("#", 0) == 0) header = matches(line, match, title) ? match[1] : "";
    if (line.rfind("| ", 0) != 0) continue;
    if (!header.empty())
      for (const Groups& at : all_in(line.substr(0, line.find(" | ", 1)), quoted)) page.of_cpp[header].insert(at[1]);
    for (const Groups& at : all_in(line, c_name)) page.of_c.insert(at[0]);
  }
  return page;
}

Names without(Names all, const Names& some) {
  for (const std::string& name : some) all.erase(name);
  return all;
}

TEST(CInterfacePage, OmissionsAreNoticed) {
  const rules::SourceFile header{
      "a.h",
      {"class A {", " public:", "  int size() const;", "  A& push(int a) {", " private:", "  void hidden();", "};",
       "/// comment f(x)", "Result<int> made(int a,", "    int b);"}};
  EXPECT_EQ(declared_in_cpp(header), (Names{"size", "push", "made"}));
  const Page page = read_page({"### `a.h`", "| `size`, `gone` | `ju_size` |", "## Other", "| `left` | `ju_other` |"});
  EXPECT_EQ(page.of_cpp.at("a.h"), (Names{"size", "gone"}));
  EXPECT_EQ(page.of_c, (Names{"ju_size", "ju_other"}));
}

TEST(CInterfacePage, HasEveryFunctionOfCpp) {
  const Page page = read_page(rules::read_file("docs/c.md").lines);
  ASSERT_GE(page.of_cpp.size(), 15u);
  // The functions of <jitunwind/jitunwind.h>, <jitunwind/target.h> and the library's adapters for users.
  for (const char* const header : {"builders/procedure_builder.h",
                                   "builders/description.h",
                                   "builders/shapes/frame_shape.h",
                                   "builders/described_rows.h",
                                   "builders/frame_handler.h",
                                   "builders/registration.h",
                                   "builders/object_registration.h",
                                   "dyn_info/check_procedure.h",
                                   "dyn_info/registry/registry.h",
                                   "sdk/walk.h",
                                   "sdk/walk_thread.h",
                                   "sdk/target.h",
                                   "sdk/local_space.h",
                                   "sdk/statistics.h",
                                   "sdk/dump.h",
                                   "unwind_core/walk/cursor.h",
                                   "unwind_core/walk/resume.h",
                                   "unwind_core/trace/log.h",
                                   "adapters/code_segments/code_segments.h",
                                   "adapters/gdb_jit/gdb_jit.h",
                                   "adapters/perf/perf.h",
                                   "adapters/system_unwinder/system_unwinder.h",
                                   "adapters/testing/check_by_stepping.h"}) {
    ASSERT_EQ(page.of_cpp.count(header), 1u) << header;
    const Names declared = declared_in_cpp(rules::read_file(header));
    EXPECT_GE(declared.size(), 1u) << header;
    EXPECT_EQ(without(declared, page.of_cpp.at(header)), Names{}) << header << ": not in docs/c.md";
    // The header has everything that the page has.
    std::string text;
    for (const std::string& line : rules::read_file(header).lines) text += line + "\n";
    for (const std::string& name : page.of_cpp.at(header))
      EXPECT_TRUE(has_match(text, Pattern("\\b" + name + "\\b"))) << header << ": " << name;
  }
}

TEST(CInterfacePage, HasEveryFunctionOfC) {
  const Page page = read_page(rules::read_file("docs/c.md").lines);
  const auto declared = declared_in_c();
  ASSERT_GT(declared.size(), 140u);
  std::string headers;
  for (const rules::SourceFile& file : rules::source_files())
    if ((file.path.rfind("sdk/c/", 0) == 0 && file.has_extension(".h")) || file.path.ends_with("/c_testing.h"))
      headers += rules::joined(file.lines);
  for (const auto& [name, commented] : declared) {
    EXPECT_TRUE(commented) << name << " has no comment";
    if (name.rfind("ju_", 0) == 0) {
      EXPECT_EQ(page.of_c.count(name), 1u) << name << " is not in docs/c.md";
    }
  }
  for (const std::string& name : page.of_c) EXPECT_NE(headers.find(name), std::string::npos) << name << " is not there";
}

/// every_function.h has all functions, except for those that only set what a caller declares.
TEST(CInterfacePage, EveryFunctionIsHandedWhatIsWrong) {
  Names declared, called;
  for (const auto& function : declared_in_c())
    if (function.first.rfind("ju_", 0) == 0) declared.insert(function.first);
  for (const every::Function& function : every::functions) called.insert(function.name);
  EXPECT_EQ(without(declared, {"ju_error_init", "ju_code_init"}), called);
}

/// The example of a JIT compiler is short enough to be read, and its use of the library is shorter.
TEST(CInterface, ExamplesAreShort) {
  std::size_t examples = 0;
  for (const rules::SourceFile& file : rules::source_files()) {
    if (file.path.rfind("examples/c/", 0) != 0) continue;
    ++examples;
    EXPECT_LE(file.lines.size(), 150u) << file.path;
    const auto integrates = [](const std::string& line) { return line.find("ju_") != std::string::npos; };
    EXPECT_LE(std::count_if(file.lines.begin(), file.lines.end(), integrates), 40) << file.path;
  }
  EXPECT_GE(examples, 4u);
}

TEST(CInterface, ExportsWhatItDeclares) {
  const std::string exported = output_of("nm -D --defined-only '" JITUNWIND_SHARED "' '" JITUNWIND_CORE_SHARED "'");
  for (const auto& [name, commented] : declared_in_c()) {
    if (name == "ju_error_init" || name == "ju_code_init") continue;  // inline
    EXPECT_NE(exported.find(" T " + name + "@@JITUNWIND_1\n"), std::string::npos) << name;
  }
  // The library exports no other names of that form, except for what jitunwind_jit.h looks for.
  static const Pattern c_name(R"( T (ju_\w+)@@)");
  auto declared = declared_in_c();
  declared["ju_jit_functions"];
  for (const Groups& at : all_in(exported, c_name)) EXPECT_EQ(declared.count(at[1]), 1u) << at[1];
}

/// sdk/c/registers.h equals the CPUs' tables.
TEST(CInterface, RegistersAreThoseOfTheTables) {
  EXPECT_EQ(text_of_file(JITUNWIND_SOURCE_DIR "/sdk/c/registers.h"), output_of(WRITE_REGISTERS))
      << "run " WRITE_REGISTERS " > sdk/c/registers.h";
}

}  // namespace
