// The form of comments in all files of source code, of CMake and of scripts: sentences that have a subject and an end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"
#include "tests/support/texts.h"

namespace {

using jitunwind::test::Groups, jitunwind::test::Pattern;
using rules::k_most_words;
using rules::SourceFile;
using Lines = std::vector<std::string>;

struct Comment {
  std::size_t line = 0;
  std::string text;
};

/// Rewrites block comments as lines that begin with a pair of slashes.
Lines with_slashes(Lines lines) {
  static const Pattern begin(R"(( */\*\*? ).*)");
  std::size_t margin = 0;  // of the text of a block comment; 0: outside of one
  for (std::string& line : lines) {
    Groups match;
    if (margin == 0 && !matches(line, match, begin)) continue;
    const std::size_t text = margin == 0 ? match[1].size() : std::min(margin, line.find_first_not_of(' '));
    margin = line.ends_with("*/") ? 0 : match.empty() ? margin : match[1].size();
    line = "// " + line.substr(std::min(text, line.size()));
    if (margin == 0) line.resize(line.size() - 2);
  }
  return lines;
}

/// Finds comments in lines of their own, one for each paragraph. Lines that are indented within a comment are formulas
/// and pictures, and do not count.
std::vector<Comment> comments_of(const Lines& file) {
  static const Pattern form(R"(^ *///?( (?! )(.*))?$)");
  const Lines lines = with_slashes(file);
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

Lines sentences_of(const std::string& text) {
  Lines found{""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    found.back() += word + " ";
    if (std::string(".?!").find(word.back()) != std::string::npos) found.emplace_back();
  }
  return found;
}

/// A sentence that begins with one of these words has no subject, so that the reader has to look for it above, or has a
/// clause in place of a noun.
bool is_fragment(const std::string& sentence) {
  static const Pattern fragment(
      "(Of|By|Which|Whose|The same|But for|And|To|For|From|Lest|Likewise|With|Without|At|In|As|Nor|Also|What|Where|"
      "Whoever|One that)\\b.*");
  return matches(sentence, fragment);
}

bool has_fragment(const Comment& comment) {
  const Lines sentences = sentences_of(comment.text);
  return std::any_of(sentences.begin(), sentences.end(), is_fragment);
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
    if (has_fragment(comment) || has_long_sentence(comment))
      found.push_back(file.path + ":" + std::to_string(comment.line) + ": " + comment.text);
  return found;
}

TEST(CommentForm, FragmentsAndLongSentencesAreNoticed) {
  const std::string slashes = "//";
  std::string sentence;
  for (std::size_t i = 0; i < k_most_words; ++i) sentence += " word";
  const auto offending = [](const Lines& lines) { return offending_comments({"a.h", lines}).size(); };
  EXPECT_EQ(offending({slashes + "/ Of the frame.", "int a;"}), 1u);
  EXPECT_EQ(offending({"  " + slashes + " The frame", "  " + slashes + " of a walk."}), 0u);
  EXPECT_EQ(offending({slashes + " The frame is", slashes + " read. Of the frame."}), 1u);
  EXPECT_EQ(offending({slashes + " The frame is", slashes + " read. What is read."}), 1u);
  EXPECT_EQ(offending({slashes + sentence + " more."}), 1u);
  EXPECT_EQ(offending({slashes + sentence + ".", slashes + " More."}), 0u);
  EXPECT_EQ(offending({slashes + "   By = formula"}), 0u);
  EXPECT_EQ(offending({"/* Of the frame. */", "int a;"}), 1u);
  EXPECT_EQ(offending({"/** The frame", "    of a walk.", "", "    Of the row. */", "int a;"}), 1u);
  EXPECT_EQ(offending({"/** The frame:", "", "      By = formula */"}), 0u);
}

/// Returns a script whose comments begin with slashes.
SourceFile with_slashes(SourceFile script) {
  static const Pattern comment("( *)#(| .*)");
  for (std::string& line : script.lines)
    if (Groups match; matches(line, match, comment)) line = match[1] + "//" + match[2];
  return script;
}

Lines offending_comments(const std::vector<SourceFile>& files) {
  Lines found;
  for (const SourceFile& file : files) {
    const Lines of_file = offending_comments(file);
    found.insert(found.end(), of_file.begin(), of_file.end());
  }
  return found;
}

TEST(CommentForm, SourceCodeSaysWhatItSpeaksOf) {
  const std::vector<SourceFile> files = rules::source_files();
  EXPECT_GT(files.size(), 1000u);
  const Lines found = offending_comments(files);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

TEST(CommentForm, ScriptsSayWhatTheySpeakOf) {
  EXPECT_EQ(offending_comments(with_slashes(SourceFile{"dev", {"#!/bin/sh", "  # Of the frame."}})).size(), 1u);
  std::vector<SourceFile> files = rules::script_files();
  EXPECT_GT(files.size(), 100u);
  for (SourceFile& file : files) file = with_slashes(file);
  const Lines found = offending_comments(files);
  EXPECT_TRUE(found.empty()) << rules::joined(found);
}

}  // namespace
