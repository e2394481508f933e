// The form of the documents: lines and sentences that can be read, links and named sections that exist, pages that can
// be found from docs/README.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;
using rules::k_most_words;
using rules::k_root;
using rules::SourceFile;
using rules::trimmed;
using Lines = std::vector<std::string>;

constexpr std::size_t k_longest_line = 120;  // characters

bool is_fence(const std::string& line) { return trimmed(line).rfind("```", 0) == 0; }
bool is_table(const std::string& line) { return trimmed(line).rfind("|", 0) == 0; }

/// Empties the lines of code blocks, so that line numbers stay. A block is fenced, or indented by four blanks behind an
/// empty line or another line of it.
Lines without_blocks(const Lines& lines) {
  Lines text;
  bool fenced = false, indented = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool fence = is_fence(lines[i]);
    if (fence) fenced = !fenced;
    indented = lines[i].rfind("    ", 0) == 0 && (indented || i == 0 || lines[i - 1].empty());
    text.push_back(fence || fenced || indented ? "" : lines[i]);
  }
  return text;
}

/// Counts characters of UTF-8, not bytes.
std::size_t width(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

Lines long_lines(const SourceFile& document) {
  Lines found;
  const Lines text = without_blocks(document.lines);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (width(text[i]) > k_longest_line && !is_table(text[i]))
      found.push_back(document.path + ":" + std::to_string(i + 1) + ": " + std::to_string(width(text[i])));
  return found;
}

/// Finds tables whose second line is not "|---|---|" with as many cells as the first: Markdown shows them as text.
Lines headless_tables(const SourceFile& document) {
  static const Pattern delimiter(R"(\s*\|(\s*:?-+:?\s*\|)+\s*)");
  static const Pattern escaped(R"(\\\|)");
  const auto cells = [](const std::string& row) {
    const std::string bars = replaced(row, escaped, "");
    return std::count(bars.begin(), bars.end(), '|');
  };
  Lines found;
  const Lines text = without_blocks(document.lines);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_table(text[i]) || (i > 0 && is_table(text[i - 1]))) continue;
    const std::string second = i + 1 < text.size() ? text[i + 1] : "";
    const bool has_head = matches(second, delimiter) && cells(text[i]) == cells(second);
    if (!has_head) found.push_back(document.path + ":" + std::to_string(i + 1) + ": " + text[i]);
  }
  return found;
}

bool begins_paragraph(const std::string& line) {
  static const Pattern item(R"(\s*([*-]|[0-9]+\.) .*)");
  return matches(line, item) || line.rfind("#", 0) == 0 || line.rfind("<", 0) == 0;
}

/// Puts paragraphs and items of lists into one line each, by the number of their first line. Code within counts as one
/// word.
std::vector<std::pair<std::size_t, std::string>> prose_of(const SourceFile& document) {
  static const Pattern code("`[^`]*`"), target(R"(\]\([^)]*\))");
  std::vector<std::pair<std::size_t, std::string>> prose;
  bool open = false;
  const Lines text = without_blocks(document.lines);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_prose = !trimmed(text[i]).empty() && !is_table(text[i]);
    if (is_prose && (!open || begins_paragraph(text[i]))) prose.emplace_back(i + 1, "");
    if (is_prose) prose.back().second += text[i] + " ";
    open = is_prose;
  }
  for (auto& [line, words] : prose) words = replaced(replaced(words, code, "code"), target, "]");
  return prose;
}

Lines long_sentences(const SourceFile& document) {
  Lines found;
  for (const auto& [line, text] : prose_of(document)) {
    std::istringstream words(text);
    std::size_t count = 0;
    for (std::string word; words >> word;) {
      ++count;
      if (std::string(".:;?!").find(word.back()) == std::string::npos) continue;
      if (count > k_most_words)
        found.push_back(document.path + ":" + std::to_string(line) + ": " + std::to_string(count) + " words to \"" +
                        word + "\"");
      count = 0;
    }
  }
  return found;
}

/// Removes code, in which brackets are no link: `[&](auto x)`.
std::string without_code(const std::string& line) {
  std::string text;
  bool code = false;
  for (const char c : line) {
    if (c == '`') code = !code;
    if (!code && c != '`') text += c;
  }
  return text;
}

struct Link {
  std::string file;   ///< "" for a place in the same page
  std::string place;  ///< behind '#'; "" for the whole page
};

/// Finds the links "[text](target)", "![text](target)" and "[text](target#place)", except for those that leave the
/// tree.
std::vector<Link> links_of(const std::string& line) {
  std::vector<Link> links;
  const std::string text = without_code(line);
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (target.find("://") != std::string::npos || target.rfind("mailto:", 0) == 0) continue;
    const std::size_t hash = std::min(target.find('#'), target.size());
    links.push_back({target.substr(0, hash), hash == target.size() ? "" : target.substr(hash + 1)});
  }
  return links;
}

/// Returns the path from the root to which a link in `document` leads.
std::string led_to(const SourceFile& document, const Link& link) {
  if (link.file.empty()) return document.path;
  return (std::filesystem::path(document.path).parent_path() / link.file).lexically_normal().string();
}

Lines headings_of(const SourceFile& page) {
  Lines headings;
  for (const std::string& line : without_blocks(page.lines))
    if (line.rfind("#", 0) == 0) headings.push_back(trimmed(line.substr(line.find_first_not_of('#'))));
  return headings;
}

/// Names the place of a heading as GitHub does.
std::string place_of(const std::string& heading) {
  std::string place;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_') place += static_cast<char>(std::tolower(byte));
    if (c == ' ') place += '-';
  }
  return place;
}

bool has_place(const SourceFile& page, const std::string& place) {
  const Lines headings = headings_of(page);
  return std::any_of(headings.begin(), headings.end(), [&](const auto& heading) { return place_of(heading) == place; });
}

Lines dead_links(const SourceFile& document) {
  Lines found;
  const Lines text = without_blocks(document.lines);
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const Link& link : links_of(text[i])) {
      const std::string file = led_to(document, link);
      const std::string at = document.path + ":" + std::to_string(i + 1) + ": ";
      if (!link.file.empty() && !std::filesystem::exists(k_root / file))
        found.push_back(at + "there is no " + link.file);
      else if (!link.place.empty() && !has_place(link.file.empty() ? document : rules::read_file(file), link.place))
        found.push_back(at + "there is no #" + link.place);
    }
  return found;
}

/// Puts the file into one line, without marks of comments, breaks and links' targets.
std::string run_on(const SourceFile& file) {
  static const Pattern mark(R"(^\s*(//+|#+|\*+|/\*+)?\s*)"), target(R"(\]\([^)]*\))");
  std::string text;
  for (const std::string& line : file.lines) text += replaced(line, mark, "") + " ";
  return replaced(text, target, "]");
}

/// Finds sections that do not exist. They are named as in: docs/registry.md "Which node"; [registry.md](registry.md),
/// "Which node".
Lines dead_sections(const SourceFile& file) {
  static const Pattern named(R"rx((\w+\.md)\]?,? "([A-Z][^"]{1,60})")rx");
  static const std::map<std::string, SourceFile> pages = [] {
    std::map<std::string, SourceFile> found;
    for (const SourceFile& page : rules::documents())
      found.emplace(std::filesystem::path(page.path).filename().string(), page);
    return found;
  }();
  Lines found;
  const std::string text = run_on(file);
  for (const Groups& at : all_in(text, named)) {
    const auto page = pages.find(at[1]);
    if (page == pages.end() || !has_place(page->second, place_of(at[2])))
      found.push_back(file.path + ": no section " + at[0]);
  }
  return found;
}

/// Finds files that do not exist but are named in code quotes, from the root: `unwind_core/rows/frame_row.h`. Names in
/// capitals stand for others.
Lines dead_paths(const SourceFile& document) {
  static const Pattern quoted(
      "`((adapters|bench|builders|cmake|docs|dyn_info|examples|sdk|tests|unwind_core)/[A-Za-z0-9_./-]+)`"),
      placeholder("(.*[/_.-])?(CPU|NAME|ID)([/_.-].*)?");
  Lines found;
  if (document.path == "docs/conformance.md") return found;  // from tests/ on, and checked by conformance_test.cpp
  const Lines text = without_blocks(document.lines);
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const Groups& at : all_in(text[i], quoted))
      if (!matches(at[1], placeholder) && !std::filesystem::exists(k_root / at[1]))
        found.push_back(document.path + ":" + std::to_string(i + 1) + ": there is no " + at[1]);
  return found;
}

/// Finds names that the file lacks: "`name()` in `sdk/walk.h`", "`Name` (`sdk/walk.h`)".
Lines dead_names(const SourceFile& document) {
  static const Pattern named(
      R"rx(`(?:\w+::)*(\w+)(?:\(\))?` (?:in |of |\()`((?:adapters|builders|cmake|docs|dyn_info|sdk|tests|unwind_core)/[\w./-]+)`)rx");
  Lines found;
  std::string text;
  for (const std::string& line : without_blocks(document.lines)) text += line + " ";
  for (const Groups& at : all_in(text, named)) {
    const std::string name = at[1], path = at[2];
    if (!std::filesystem::is_regular_file(k_root / path)) continue;  // dead_paths()
    const Lines lines = rules::read_file(path).lines;
    const auto has_name = [&](const std::string& line) { return line.find(name) != std::string::npos; };
    if (std::none_of(lines.begin(), lines.end(), has_name))
      found.push_back(document.path + ": there is no " + name + " in " + path);
  }
  return found;
}

/// Finds folders of tests/ that the map of tests does not name.
Lines unnamed_folders(const Lines& folders, const SourceFile& map) {
  Lines found;
  for (const std::string& folder : folders) {
    const auto has_it = [&](const std::string& line) {
      return is_table(line) && line.substr(0, line.find('|', 1)).find("`" + folder + "`") != std::string::npos;
    };
    if (std::none_of(map.lines.begin(), map.lines.end(), has_it)) found.push_back(folder);
  }
  return found;
}

/// Finds pages to which no chain of links from docs/README.md leads.
Lines unreachable(const std::vector<SourceFile>& pages, const std::string& start) {
  std::map<std::string, const SourceFile*> by_path;
  for (const SourceFile& page : pages) by_path[page.path] = &page;
  std::set<std::string> reached;
  Lines open{start};
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    if (by_path.count(path) == 0 || !reached.insert(path).second) continue;
    for (const std::string& line : without_blocks(by_path[path]->lines))
      for (const Link& link : links_of(line)) open.push_back(led_to(*by_path[path], link));
  }
  Lines found;
  for (const SourceFile& page : pages)
    if (reached.count(page.path) == 0) found.push_back(page.path + ": " + start + " does not lead to it");
  return found;
}

Lines found_in(const std::vector<SourceFile>& files, Lines (*rule)(const SourceFile&)) {
  Lines found;
  for (const SourceFile& file : files)
    for (const std::string& finding : rule(file)) found.push_back(finding);
  return found;
}

TEST(DocumentForm, LinesAreShort) {
  const std::string wide(121, 'x');
  EXPECT_EQ(long_lines({"a.md", {wide}}), Lines{"a.md:1: 121"});
  EXPECT_EQ(long_lines({"a.md", {"| " + wide, "```", wide, "```", "", "    " + wide, "    " + wide}}), Lines{});
  EXPECT_EQ(long_lines({"a.md", {"* point", "    " + wide}}), Lines{"a.md:2: 125"});
  EXPECT_EQ(long_lines({"a.md", {wide.substr(2) + "\u00b5"}}), Lines{});
  const Lines found = found_in(rules::documents(), long_lines);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, TablesHaveHeads) {
  EXPECT_EQ(headless_tables({"a.md", {"", "|---|---|", "| a | b |"}}), Lines{"a.md:2: |---|---|"});
  EXPECT_EQ(headless_tables({"a.md", {"| a | b |", "| c | d |"}}), Lines{"a.md:1: | a | b |"});
  EXPECT_EQ(headless_tables({"a.md", {"| a | b |", "|---|", "| c |"}}), Lines{"a.md:1: | a | b |"});
  EXPECT_EQ(headless_tables({"a.md", {R"(| a | b\|c |)", "|:--|---|", "| d | e |", "", "```", "| a |", "```"}}),
            Lines{});
  const Lines found = found_in(rules::documents(), headless_tables);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, SentencesAreShort) {
  const auto words = [](int n) {
    std::string text;
    for (int i = 1; i < n; ++i) text += "word ";
    return text + "end.";
  };
  EXPECT_EQ(long_sentences({"a.md", {"", words(36) + " " + words(36)}}), Lines{});
  EXPECT_EQ(long_sentences({"a.md", {"", words(37)}}), Lines{"a.md:2: 37 words to \"end.\""});
  EXPECT_EQ(long_sentences({"a.md", {"one", words(36)}}), Lines{"a.md:1: 37 words to \"end.\""});
  EXPECT_EQ(long_sentences({"a.md", {"one", "* " + words(35), "| " + words(50), "```", words(50), "```"}}), Lines{});
  EXPECT_EQ(long_sentences({"a.md", {"`" + words(50) + "` " + words(35)}}), Lines{});
  const Lines found = found_in(rules::documents(), long_sentences);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, LinksLeadToWhatExists) {
  EXPECT_EQ(dead_links({"a.md", {"[a](docs/not_there.md)"}}), Lines{"a.md:1: there is no docs/not_there.md"});
  EXPECT_EQ(dead_links({"a.md", {"[a](README.md), [b](nowhere#else)"}}).size(), 1u);
  EXPECT_EQ(dead_links({"docs/a.md", {"[a](README.md), [b](../README.md#not-there)"}}).size(), 1u);
  EXPECT_EQ(dead_links({"docs/a.md", {"[a](registry.md#which-node), [b](#here)"}}),
            Lines{"docs/a.md:1: there is no #here"});
  EXPECT_EQ(dead_links({"a.md", {"# Here", "[a](https://x.org/y) [b](#here) `[&](c)`", "```", "[](d)", "```"}}),
            Lines{});
  EXPECT_GT(rules::documents().size(), 5u);
  const Lines found = found_in(rules::documents(), dead_links);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, FilesThatAreNamedExist) {
  EXPECT_EQ(dead_paths({"a.md", {"`sdk/walk.h`, `tests/NAME`, `arch/CPU.cpp`, `sdk/no.h` docs/no.md `bench/x.json`"}}),
            (Lines{"a.md:1: there is no sdk/no.h", "a.md:1: there is no bench/x.json"}));
  const Lines found = found_in(rules::documents(), dead_paths);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, NamesAreInTheFilesThatAreNamed) {
  EXPECT_EQ(dead_names(
                {"a.md",
                 {"`walk_here()` in `sdk/walk.h`, `jitunwind::Frame` (`sdk/walk.h`),", "`nowhere()` in `sdk/walk.h`"}}),
            Lines{"a.md: there is no nowhere in sdk/walk.h"});
  const Lines found = found_in(rules::documents(), dead_names);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, EveryFolderOfTestsIsInTheirMap) {
  EXPECT_EQ(unnamed_folders({"a", "b"}, {"README.md", {"| `a`, `c` | `b` |"}}), Lines{"b"});
  Lines folders;
  for (const auto& entry : std::filesystem::directory_iterator(k_root / "tests"))
    if (entry.is_directory()) folders.push_back(entry.path().filename().string());
  EXPECT_GT(folders.size(), 10u);
  const SourceFile map = rules::read_file("tests/README.md");
  EXPECT_EQ(unnamed_folders(folders, map), Lines{});
  for (const std::string& line : map.lines) {
    static const Pattern named("`([a-z_]+)`");
    const std::string cell = is_table(line) ? line.substr(0, line.find('|', 1)) : "";
    for (const Groups& at : all_in(cell, named))
      EXPECT_NE(std::find(folders.begin(), folders.end(), at[1]), folders.end()) << "there is no " << at[0];
  }
}

TEST(DocumentForm, SectionsThatAreNamedExist) {
  EXPECT_EQ(dead_sections({"a.h", {"// docs/registry.md \"Which node\", [x.md](registry.md), \"Which", "// node\""}}),
            Lines{"a.h: no section x.md], \"Which node\""});
  EXPECT_EQ(dead_sections({"a.md", {"[registry.md](registry.md), \"Nowhere", "at all\""}}).size(), 1u);
  Lines found = found_in(rules::documents(), dead_sections);
  for (const std::string& finding : found_in(rules::source_files(), dead_sections))
    if (finding.rfind("tests/rules/document_form_test.cpp", 0) != 0) found.push_back(finding);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(DocumentForm, EveryPageIsFoundFromTheFirst) {
  EXPECT_EQ(
      unreachable({{"docs/README.md", {"[b](b.md)"}}, {"docs/b.md", {"[c](../c.md#x)"}}, {"c.md", {}}, {"d.md", {}}},
                  "docs/README.md"),
      Lines{"d.md: docs/README.md does not lead to it"});
  const Lines found = unreachable(rules::documents(), "docs/README.md");
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

}  // namespace
