// The form of the comments where the code is hardest: what keeps rows, walks by them and finds them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;
using rules::k_most_words;
using rules::SourceFile;
using rules::trimmed;
using Lines = std::vector<std::string>;

constexpr std::array<std::string_view, 5> k_folders{"unwind_core/kept/", "unwind_core/walk/", "unwind_core/modules/",
                                                    "unwind_core/sources/cfi/", "sdk/exceptions/runtime/"};

struct Comment {
  std::size_t line = 0;
  std::string text;
};

/// Comments in lines of their own, one for each paragraph. Lines that are indented within a comment are none of it:
/// formulas and pictures.
std::vector<Comment> comments_of(const Lines& lines) {
  static const Pattern form(R"(^ *///?( (?! )(.*))?$)");
  std::vector<Comment> found;
  bool open = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Groups match;
    const bool is_text = matches(lines[i], match, form) && !match[2].empty();
    if (is_text && !open) found.push_back({i + 1, ""});
    if (is_text) found.back().text += match[2] + " ";
    open = is_text;
  }
  return found;
}

/// A comment that begins so has no subject: the reader has to look for it above.
bool lacks_subject(const Comment& comment) {
  static const Pattern fragment(
      "(Of|By|Which|Whose|The same|But for|And|To|For|From|Lest|Likewise|With|Without|At|In|As|Nor|Also)\\b.*");
  return matches(comment.text, fragment);
}

bool has_long_sentence(const Comment& comment) {
  std::istringstream words(comment.text);
  std::size_t count = 0;
  for (std::string word; words >> word;) {
    if (++count > k_most_words) return true;
    if (std::string(".:;?!").find(word.back()) != std::string::npos) count = 0;
  }
  return false;
}

Lines offending_comments(const SourceFile& file) {
  Lines found;
  for (const Comment& comment : comments_of(file.lines))
    if (lacks_subject(comment) || has_long_sentence(comment))
      found.push_back(file.path + ":" + std::to_string(comment.line) + ": " + comment.text);
  return found;
}

TEST(CommentForm, FragmentsAndLongSentencesAreNoticed) {
  const std::string slashes = "//";
  std::string sentence;
  for (std::size_t i = 0; i < k_most_words; ++i) sentence += " word";
  EXPECT_EQ(offending_comments({"a.h", {slashes + "/ Of the frame.", "int a;"}}).size(), 1u);
  EXPECT_EQ(offending_comments({"a.h", {"  " + slashes + " The frame", "  " + slashes + " of a walk."}}).size(), 0u);
  EXPECT_EQ(offending_comments({"a.h", {slashes + sentence + " more."}}).size(), 1u);
  EXPECT_EQ(offending_comments({"a.h", {slashes + sentence + ".", slashes + " More."}}).size(), 0u);
  EXPECT_EQ(offending_comments({"a.h", {slashes + "   By = formula"}}).size(), 0u);
}

TEST(CommentForm, HardPartsSayWhatTheySpeakOf) {
  Lines found;
  std::size_t files = 0;
  for (const SourceFile& file : rules::source_files()) {
    const auto is_in = [&](std::string_view folder) { return file.path.rfind(folder, 0) == 0; };
    if (!std::any_of(k_folders.begin(), k_folders.end(), is_in)) continue;
    ++files;
    const Lines of_file = offending_comments(file);
    found.insert(found.end(), of_file.begin(), of_file.end());
  }
  EXPECT_GT(files, 60u);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

}  // namespace
