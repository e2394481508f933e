// What commands print, what files hold, and which texts are of a form. std::regex takes gcc seconds in every source
// that includes it: it is in texts.cpp alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace jitunwind::test {

/// What a shell command prints. `status`: as waitpid(2) has it; -1: there is no shell.
std::string output_of(const std::string& command, int& status);

std::vector<std::string> lines_of(const std::string& text);

/// Every byte. "": it cannot be read.
std::string text_of_file(const std::string& path);

/// What an expression has found, and each of its groups; "" of a group that took no part.
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

/// Whether the whole text is one. `found`: empty if it is not.
bool matches(const std::string& text, Groups& found, const Pattern& pattern);
bool matches(const std::string& text, const Pattern& pattern);
/// Whether a part of the text is one; the first.
bool has_match(const std::string& text, Groups& found, const Pattern& pattern);
bool has_match(const std::string& text, const Pattern& pattern);
std::vector<Groups> all_in(const std::string& text, const Pattern& pattern);
/// `with`: "$1" is the first group.
std::string replaced(const std::string& text, const Pattern& pattern, const std::string& with);

}  // namespace jitunwind::test
