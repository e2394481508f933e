// The output of commands, the contents of files, and matches of regular expressions. gcc takes seconds for std::regex
// in every source that includes it, so only texts.cpp does.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace jitunwind::test {

/// Returns what a shell command prints. `status` is that of waitpid(2); -1: there is no shell.
std::string output_of(const std::string& command, int& status);

std::vector<std::string> lines_of(const std::string& text);

/// Returns the contents of a file, or "" if it cannot be read.
std::string text_of_file(const std::string& path);

/// The match of an expression and each of its groups; "" for a group that took no part.
using Groups = std::vector<std::string>;

/// A regular expression of ECMAScript.
class Pattern {
 public:
  Pattern(const std::string& expression);
  Pattern(const char* expression) : Pattern(std::string(expression)) {}

 private:
  friend class Compiled;
  std::shared_ptr<const class Compiled> compiled_;
};

/// Returns whether the whole text matches. `found` is empty if it does not.
bool matches(const std::string& text, Groups& found, const Pattern& pattern);
bool matches(const std::string& text, const Pattern& pattern);
/// Finds the first part of the text that matches.
bool has_match(const std::string& text, Groups& found, const Pattern& pattern);
bool has_match(const std::string& text, const Pattern& pattern);
std::vector<Groups> all_in(const std::string& text, const Pattern& pattern);
/// Replaces each match by `with`, in which "$1" is the first group.
std::string replaced(const std::string& text, const Pattern& pattern, const std::string& with);

}  // namespace jitunwind::test
