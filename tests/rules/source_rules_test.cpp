// Rules that every source file keeps. Each rule is a function from one file to its violations, tried on an offender
// first and on the tree then.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;
using rules::k_prefix;
using rules::SourceFile;
using Violations = std::vector<std::string>;
using Rule = std::function<Violations(const SourceFile&)>;

// A folder includes only folders before it; those in the last group may include each other.
constexpr std::array<const char*, 8> k_layers{"unwind_core", "dyn_info", "builders", "sdk",
                                              "adapters",    "examples", "tests",    "bench"};
constexpr std::size_t k_first_of_last_group = 5;
constexpr std::size_t k_max_lines = 600;

std::size_t layer_of(const std::string& path) {
  const std::string folder = path.substr(0, path.find('/'));
  const auto at = std::find(k_layers.begin(), k_layers.end(), folder);
  return std::min(static_cast<std::size_t>(at - k_layers.begin()), k_layers.size());
}

std::string place(const SourceFile& file, std::size_t line) {
  return file.path + ":" + std::to_string(line + 1) + ": " + (line < file.lines.size() ? file.lines[line] : "");
}

/// Returns "adapters/asmjit" for "adapters/asmjit/x.h".
std::string first_two(const std::string& path) {
  const std::size_t second = path.find('/', path.find('/') + 1);
  return path.substr(0, second);
}

/// Finds headers of the library under names that a user's headers may have as well.
Violations includes_by_general_names(const SourceFile& file) {
  Violations found;
  if (file.path.rfind("tests/install/", 0) == 0) return found;  // users' programs, with headers of their own
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (layer_of(rules::included_file(file.lines[i])) < k_first_of_last_group) found.push_back(place(file, i));
  }
  return found;
}

Violations upward_includes(const SourceFile& file) {
  Violations found;
  const std::size_t own = layer_of(file.path);
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    std::string included = rules::included_file(file.lines[i]);
    const bool of_layer = included.rfind(k_prefix, 0) == 0;
    if (of_layer) included.erase(0, k_prefix.size());
    const bool umbrella = of_layer && included.find('/') == std::string::npos;  // all layers up to sdk
    const std::size_t other = umbrella ? layer_of("sdk/") : layer_of(included);
    if (other == k_layers.size()) continue;
    const bool upward = other > own && own < k_first_of_last_group;
    const bool sideways = file.folder() == "adapters" && other == own && first_two(included) != first_two(file.path) &&
                          first_two(included) != "adapters/code_segments";
    if (upward || sideways) found.push_back(place(file, i));
  }
  return found;
}

/// The table begins with the lowest layer, so that rooms of other layers count as well.
Violations includes_of_rooms_above(const SourceFile& file, const rules::Rooms& rooms) {
  if (layer_of(file.path) >= k_first_of_last_group) return {};
  const rules::Room* const own = rules::room_of(file.path, rooms);
  if (!own) return {file.path + " is in no room"};
  Violations found;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string included = rules::included_file(file.lines[i]);
    if (!included.starts_with(k_prefix)) continue;
    const rules::Room* const other = rules::room_of(included.substr(k_prefix.size()), rooms);
    if (other && other->place > own->place) found.push_back(place(file, i));
  }
  return found;
}

/// gcc takes seconds more for each source that includes it.
Violations regex_in_tests(const SourceFile& file) {
  Violations found;
  if (file.folder() != "tests" || file.path == "tests/support/texts.cpp") return found;
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    if (rules::included_file(file.lines[i]) == "regex") found.push_back(place(file, i));
  return found;
}

Violations cpu_conditionals(const SourceFile& file) {
  static const Pattern conditional(
      R"(\s*#\s*(if|ifdef|ifndef|elif).*__(x86_64|amd64|i386|aarch64|arm|riscv|powerpc|s390|mips|loongarch|LP64)\w*.*)");
  Violations found;
  const bool engine = layer_of(file.path) < k_first_of_last_group;
  // The descriptor's layout is asserted for pointers of 8 bytes.
  if (!engine || file.path.rfind("unwind_core/arch/", 0) == 0 || file.path == "dyn_info/libunwind-dynamic.h") return {};
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (matches(file.lines[i], conditional)) found.push_back(place(file, i));
  }
  return found;
}

Violations too_long(const SourceFile& file) {
  if (file.lines.size() <= k_max_lines) return {};
  return {file.path + " has " + std::to_string(file.lines.size()) + " lines"};
}

/// The standard library's headers include others, which differ in each release.
Violations headers_without_cstdint(const SourceFile& file) {
  static const Pattern integer(R"(.*\bu?int(8|16|32|64|ptr|max)_t\b.*)");
  static const Pattern include(R"(#include <(cstdint|stdint\.h)>)");
  if (!file.has_extension(".h")) return {};
  for (const std::string& line : file.lines)
    if (matches(line, include)) return {};
  for (std::size_t i = 0; i < file.lines.size(); ++i)
    if (matches(file.lines[i], integer)) return {place(file, i)};
  return {};
}

bool is_public_cpp_header(const SourceFile& file) {
  const auto in = [&](const char* folder) { return file.path.rfind(folder, 0) == 0; };
  const bool c_header = in("sdk/c/") || in("sdk/compat/") || in("sdk/uwx/") || in("adapters/jit_header/include/") ||
                        file.path == "sdk/include/jitunwind/c.h" || file.path == "dyn_info/libunwind-dynamic.h";
  return file.has_extension(".h") && !file.is_private() && !c_header && layer_of(file.path) < k_first_of_last_group;
}

/// Macros outlive the header only in C headers.
Violations macros_in_public_headers(const SourceFile& file) {
  static const Pattern define(R"(\s*#\s*define\s+(\w+).*)");
  Violations found;
  if (!is_public_cpp_header(file)) return {};
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    Groups match;
    if (!matches(file.lines[i], match, define)) continue;
    const std::string undefined = "#undef " + match[1];
    if (std::find(file.lines.begin(), file.lines.end(), undefined) == file.lines.end()) found.push_back(place(file, i));
  }
  return found;
}

/// Declarations of a public header are exported: the namespace stands between the two pragmas, behind all includes.
Violations unexported_public_headers(const SourceFile& file) {
  if (!is_public_cpp_header(file)) return {};
  const auto find = [&](const std::string& text) {
    return std::find(file.lines.begin(), file.lines.end(), text) - file.lines.begin();
  };
  const auto size = static_cast<std::ptrdiff_t>(file.lines.size());
  const auto push = find("#pragma GCC visibility push(default)");
  const auto pop = find("#pragma GCC visibility pop");
  const auto opens = std::find_if(file.lines.begin(), file.lines.end(),
                                  [](const std::string& l) { return l.rfind("namespace jitunwind", 0) == 0; }) -
                     file.lines.begin();
  if (opens == size) return {};
  if (push >= opens || pop != size - 1) return {file.path + ": visibility pragmas missing around the namespace"};
  return {};
}

/// A friend function is not exported by the pragma, unless it is declared at namespace scope as well.
Violations unexported_friends(const SourceFile& file) {
  static const Pattern friend_function(R"(friend (?!class |struct )([^;{]*\)(?: noexcept)?;))");
  Violations found;
  if (!is_public_cpp_header(file)) return {};
  std::string text;  // wrapped declarations on one line
  for (const std::string& line : file.lines) text += line + " ";
  text = replaced(text, Pattern(" +"), " ");
  for (const Groups& at : all_in(text, friend_function)) {
    const std::string declaration = at[1];
    const std::size_t first = text.find(declaration);
    if (text.find(declaration, first + 1) == std::string::npos) found.push_back(file.path + ": friend " + declaration);
  }
  return found;
}

Violations private_includes_in_public_headers(const SourceFile& file) {
  Violations found;
  if (!is_public_cpp_header(file)) return {};
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    if (SourceFile{rules::included_file(file.lines[i]), {}}.is_private()) found.push_back(place(file, i));
  }
  return found;
}

/// Headers have #pragma once; those that C programs read have guards.
Violations unguarded_headers(const SourceFile& file) {
  if (!file.has_extension(".h")) return {};
  for (const std::string& line : file.lines) {
    if (line == "#pragma once" || line.rfind("#ifndef JITUNWIND_", 0) == 0) return {};
  }
  return {file.path};
}

/// Checks the rules of .editorconfig for files that clang-format does not format: assembly, tables.
Violations untidy_lines(const SourceFile& file) {
  Violations found;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const bool ends_in_blank = !line.empty() && std::string(" \t\r").find(line.back()) != std::string::npos;
    if (ends_in_blank || line.find('\t') != std::string::npos) found.push_back(place(file, i));
  }
  return found;
}

/// Finds folders with more loose files than a reader takes in: further files belong into subfolders.
Violations crowded_folders(const std::vector<std::string>& paths) {
  constexpr int k_most = 20;
  std::map<std::string, int> files;
  for (const std::string& path : paths) ++files[path.substr(0, path.rfind('/'))];
  Violations found;
  for (const auto& [folder, count] : files)
    if (count > k_most) found.push_back(folder + " has " + std::to_string(count) + " files");
  return found;
}

/// Returns files of any kind, except for hidden ones.
std::vector<std::string> library_files() {
  namespace fs = std::filesystem;
  const fs::path root = JITUNWIND_SOURCE_DIR;
  std::vector<std::string> paths;
  for (std::size_t layer = 0; layer < k_first_of_last_group; ++layer)
    for (const auto& entry : fs::recursive_directory_iterator(root / k_layers[layer]))
      if (entry.is_regular_file() && entry.path().filename().native().front() != '.')
        paths.push_back(fs::relative(entry.path(), root));
  return paths;
}

/// Returns whether a line evaluates a row: it reads words of memory in place, or asks a kept row for its CFA or for the
/// place of a register.
bool is_of_evaluator(const std::string& line) {
  static const Pattern evaluates(
      R"(\braw_word\(|\bset_in_place\(|\bcfa_words \*|\bcfa_offset\(\)|\bcfa_below_frame_pointer\(\)|\w\.slots\[)");
  return line.starts_with(' ') && has_match(line, evaluates);
}

/// Returns the name of the function of a file or class whose definition begins in this line; "" for other lines.
std::string defined_function(const std::string& line) {
  static const Pattern of_file(R"(^[A-Za-z\[].*?(\w+)\(.*)"), of_class(R"(^  [A-Za-z\[][^=;]*? \*?(\w+)\(.*[^;]$)");
  static const Pattern statement(R"(^  (if|for|while|switch|return|do|else|case|static_assert)\b.*)");
  Groups match;
  if (matches(line, match, of_file)) return match[1];
  return !matches(line, statement) && matches(line, match, of_class) ? match[1] : "";
}

/// Returns "file function" for functions of the engine that may evaluate rows.
std::set<std::string> functions_that_evaluate(const std::vector<SourceFile>& files) {
  std::set<std::string> found;
  for (const SourceFile& file : files) {
    const auto speaks_of_rules = [](const std::string& line) {
      return has_match(line, Pattern("raw_word|set_in_place|CompactRow|CallerRule"));
    };
    if (layer_of(file.path) >= k_first_of_last_group || std::ranges::none_of(file.lines, speaks_of_rules)) continue;
    std::string function;
    for (const std::string& line : file.lines) {
      if (const std::string name = defined_function(line); !name.empty()) function = name;
      if (is_of_evaluator(line)) found.insert(file.path + ' ' + function);
    }
  }
  return found;
}

/// Returns "file function" from the first two columns of the table in docs/caches.md, "Short forms".
std::set<std::string> documented_short_forms() {
  static const Pattern row(R"(\| `([^`]+)` \|((?: `\w+\(\)`)+) \| [^|`]+ \|(?: `tests/[^`]+`)+ \|)");
  static const Pattern name(R"(`(\w+)\(\)`)");
  std::set<std::string> found;
  for (const std::string& line : rules::read_file("docs/caches.md").lines) {
    Groups match;
    if (!matches(line, match, row)) continue;
    for (const Groups& each : all_in(match[2], name)) found.insert(match[1] + ' ' + each[1]);
  }
  return found;
}

void expect_kept(const Rule& rule) {
  const std::vector<SourceFile> files = rules::source_files();
  ASSERT_GT(files.size(), 40u);
  Violations found;
  for (const SourceFile& file : files) {
    const Violations of_file = rule(file);
    found.insert(found.end(), of_file.begin(), of_file.end());
  }
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(SourceRules, LayersPointDownwards) {
  const std::string include = "#include ";
  EXPECT_EQ(upward_includes({"dyn_info/a.cpp", {include + "\"jitunwind/builders/b.h\""}}).size(), 1u);
  EXPECT_EQ(upward_includes({"adapters/perf/a.cpp", {include + "\"jitunwind/adapters/gdb_jit/b.h\""}}).size(), 1u);
  EXPECT_EQ(upward_includes({"adapters/perf/a.cpp", {include + "\"jitunwind/adapters/code_segments/b.h\""}}).size(),
            0u);
  EXPECT_EQ(upward_includes({"unwind_core/a.cpp", {include + "<jitunwind/jitunwind.h>"}}).size(), 1u);
  EXPECT_EQ(upward_includes({"adapters/perf/a.cpp", {include + "\"jitunwind/adapters/perf/b.h\""}}).size(), 0u);
  EXPECT_EQ(upward_includes({"builders/a.cpp", {include + "\"tests/support/b.h\""}}).size(), 1u);
  expect_kept(upward_includes);
}

TEST(SourceRules, RoomsPointDownwards) {
  const rules::Rooms three{{"sdk/a.h", {1, {}}}, {"sdk/", {2, {}}}, {"sdk/b/", {3, {}}}};
  const auto found = [&](const std::string& path, const std::string& header) {
    return includes_of_rooms_above({path, {"#include \"jitunwind/" + header + "\""}}, three).size();
  };
  EXPECT_EQ(found("sdk/a.cpp", "sdk/c.h"), 1u);
  EXPECT_EQ(found("sdk/c.cpp", "sdk/b/d/e.h"), 1u);
  EXPECT_EQ(found("sdk/b/d/e.cpp", "sdk/c.h"), 0u);
  EXPECT_EQ(found("sdk/c.cpp", "sdk/a.h"), 0u);
  EXPECT_EQ(found("sdk/new/a.cpp", "sdk/a.h"), 1u);  // in no room
  const rules::Rooms rooms = rules::documented_rooms();
  expect_kept([&](const SourceFile& file) { return includes_of_rooms_above(file, rooms); });
}

TEST(SourceRules, HeadersAreNamedAsAnInstalledCopysAre) {
  const std::string include = "#include ";
  EXPECT_EQ(includes_by_general_names({"tests/a.cpp", {include + "\"builders/b.h\""}}).size(), 1u);
  EXPECT_EQ(includes_by_general_names({"sdk/a.h", {include + "\"jitunwind/builders/b.h\""}}).size(), 0u);
  EXPECT_EQ(includes_by_general_names({"tests/a.cpp", {include + "\"tests/b.h\""}}).size(), 0u);
  expect_kept(includes_by_general_names);
}

TEST(SourceRules, TestsHaveRegularExpressionsOfOneSource) {
  const std::string include = "#include <regex>";
  EXPECT_EQ(regex_in_tests({"tests/a.h", {include}}).size(), 1u);
  EXPECT_EQ(regex_in_tests({"tests/support/texts.cpp", {include}}).size(), 0u);
  expect_kept(regex_in_tests);
}

TEST(SourceRules, CpuConditionalsStayInArch) {
  EXPECT_EQ(cpu_conditionals({"sdk/a.cpp", {"#if defined(__x86_64__)"}}).size(), 1u);
  EXPECT_EQ(cpu_conditionals({"unwind_core/arch/a.cpp", {"#if defined(__x86_64__)"}}).size(), 0u);
  expect_kept(cpu_conditionals);
}

TEST(SourceRules, FilesStayBelowSixHundredLines) {
  EXPECT_EQ(too_long({"sdk/a.cpp", Violations(601)}).size(), 1u);
  expect_kept(too_long);
}

TEST(SourceRules, HeadersWithIntegersOfAWidthIncludeCstdint) {
  EXPECT_EQ(headers_without_cstdint({"sdk/a.h", {"std::uint64_t f();"}}).size(), 1u);
  EXPECT_EQ(headers_without_cstdint({"sdk/a.h", {"#include <cstdint>", "std::uint64_t f();"}}).size(), 0u);
  EXPECT_EQ(headers_without_cstdint({"sdk/c/a.h", {"#include <stdint.h>", "uintptr_t f();"}}).size(), 0u);
  expect_kept(headers_without_cstdint);
}

TEST(SourceRules, PublicHeadersLeaveNoMacros) {
  EXPECT_EQ(macros_in_public_headers({"sdk/a.h", {"#define X 1"}}).size(), 1u);
  EXPECT_EQ(macros_in_public_headers({"sdk/a.h", {"#define X 1", "#undef X"}}).size(), 0u);
  expect_kept(macros_in_public_headers);
}

TEST(SourceRules, PublicHeadersExportTheirNamespace) {
  EXPECT_EQ(unexported_public_headers({"sdk/a.h", {"namespace jitunwind {", "}"}}).size(), 1u);
  expect_kept(unexported_public_headers);
}

TEST(SourceRules, FriendFunctionsAreExported) {
  const std::string declaration = "bool operator==(const A& a, const A& b);";
  EXPECT_EQ(unexported_friends({"sdk/a.h", {"  friend " + declaration}}).size(), 1u);
  EXPECT_EQ(unexported_friends({"sdk/a.h", {"  friend " + declaration, declaration}}).size(), 0u);
  EXPECT_EQ(unexported_friends({"sdk/a.h", {"  friend bool f(int a,", "      int b) noexcept;"}}).size(), 1u);
  EXPECT_EQ(unexported_friends({"sdk/a.h", {"  friend bool operator==(A, A) = default;"}}).size(), 0u);
  expect_kept(unexported_friends);
}

TEST(SourceRules, PublicHeadersIncludeNoPrivateOnes) {
  EXPECT_EQ(private_includes_in_public_headers({"sdk/a.h", {std::string("#include ") + "\"sdk/b_p.h\""}}).size(), 1u);
  expect_kept(private_includes_in_public_headers);
}

TEST(SourceRules, LinesAreAsEditorsAreTold) {
  EXPECT_EQ(untidy_lines({"sdk/a.S", {"\tret", "ret ", "ret\r", "  ret", ""}}).size(), 3u);
  expect_kept(untidy_lines);
}

TEST(SourceRules, NoFolderIsCrowded) {
  std::vector<std::string> made_up(20, "sdk/room/a.h");
  EXPECT_EQ(crowded_folders(made_up).size(), 0u);
  made_up.push_back("sdk/room/b.h");
  EXPECT_EQ(crowded_folders(made_up).size(), 1u);
  const std::vector<std::string> paths = library_files();
  ASSERT_GT(paths.size(), 300u);
  const Violations found = crowded_folders(paths);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(SourceRules, HeadersAreGuarded) {
  EXPECT_EQ(unguarded_headers({"sdk/a.h", {"int f();"}}).size(), 1u);
  expect_kept(unguarded_headers);
}

/// Finds files of the library that define something thread-local.
std::set<std::string> files_with_thread_locals(const std::vector<SourceFile>& files) {
  static const Pattern definition(R"(\s*(?!extern )(?:\w+ )*thread_local .*)");
  std::set<std::string> found;
  for (const SourceFile& file : files)
    if (layer_of(file.path) < k_first_of_last_group &&
        std::any_of(file.lines.begin(), file.lines.end(),
                    [](const std::string& line) { return matches(line, definition); }))
      found.insert(file.path);
  return found;
}

TEST(SourceRules, WhatThreadsHaveIsOnThePageOfWhatIsKept) {
  EXPECT_EQ(files_with_thread_locals({{"sdk/a.cpp", {"  static thread_local constinit A a{};"}},
                                      {"sdk/b.h", {"extern constinit thread_local A a;", "/// thread_local"}},
                                      {"tests/c.cpp", {"thread_local int a;"}}}),
            (std::set<std::string>{"sdk/a.cpp"}));
  const std::string page = rules::joined(rules::read_file("docs/caches.md").lines);
  const std::set<std::string> files = files_with_thread_locals(rules::source_files());
  EXPECT_GE(files.size(), 10u);
  for (const std::string& file : files) {
    // A header beside it may stand for both.
    const std::string stem = file.substr(0, file.rfind('.'));
    EXPECT_TRUE(page.find("`" + file + "`") != std::string::npos ||
                page.find("`" + stem + "_p.h`") != std::string::npos ||
                page.find("`" + stem + "_internal.h`") != std::string::npos)
        << file;
  }
}

TEST(SourceRules, ShortFormsOfRowsAreListedWithTheirTests) {
  const std::vector<std::string> made_up{"[[gnu::hot]] A f(int a) {",
                                         "  pc = raw_word(a);",
                                         "}",
                                         "bool g() {",
                                         "  if (raw_word(1))",
                                         "    raw_word(2);",
                                         "}",
                                         "class C {",
                                         "  Addr h(CallerRule rule) noexcept {",
                                         "    return sp + rule.cfa_offset();"};
  EXPECT_EQ(functions_that_evaluate({{"sdk/a.cpp", made_up}, {"tests/a.cpp", made_up}}),
            (std::set<std::string>{"sdk/a.cpp f", "sdk/a.cpp g", "sdk/a.cpp h"}));
  std::set<std::string> expected = documented_short_forms();
  EXPECT_GE(expected.size(), 7u);
  // These read in place and evaluate no rows: a ucontext_t, the kernel's frame on a signal stack, the dynamic linker's
  // words, the address of a personality routine, the functions themselves. Others convert rows to another form, or
  // decode compact rows.
  for (const char* other : {"dyn_info/directives/compact_directives.cpp run",
                            "dyn_info/directives/compact_directives.cpp end_instruction",
                            "dyn_info/directives/compact_directives.cpp finish",
                            "dyn_info/directives/compact_directives.cpp ra_at_entry",
                            "dyn_info/directives/compact_directives.cpp save",
                            "dyn_info/directives/compact_directives.cpp frees_frame_pointer",
                            "sdk/walk.cpp backtrace",
                            "unwind_core/memory/small_stack.cpp is_disarmed_stack",
                            "unwind_core/memory/small_stack.cpp begin_of_disarmed_stack",
                            "unwind_core/rows/apply_row.cpp read_in_place",
                            "unwind_core/rows/registers.h set_in_place",
                            "unwind_core/kept/caller_rule_p.h cfa_below_frame_pointer",
                            "unwind_core/kept/caller_rule_p.h cfa_offset",
                            "unwind_core/kept/caller_rule_p.h CallerRule",
                            "unwind_core/kept/compact_row.cpp compact_without",
                            "unwind_core/kept/compact_row.cpp expand",
                            "unwind_core/kept/row_cache_internal.h rule_of",
                            "unwind_core/sources/cfi/compact_cfi.cpp State",
                            "unwind_core/sources/cfi/compact_cfi.cpp find_compact_row",
                            "unwind_core/sources/cfi/compact_cfi.cpp restore",
                            "unwind_core/sources/cfi/compact_cfi.cpp run",
                            "unwind_core/sources/cfi/compact_cfi.cpp save",
                            "unwind_core/sources/cfi/eh_frame.cpp describe"})
    expected.insert(other);
  EXPECT_EQ(functions_that_evaluate(rules::source_files()), expected);
}

}  // namespace
