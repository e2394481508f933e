#include "tests/support/texts.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>

namespace jitunwind::test {

std::string output_of(const std::string& command, int& status) {
  std::string text;
  status = -1;
  std::FILE* const pipe = ::popen(("LC_ALL=C; export LC_ALL; " + command).c_str(), "r");
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;)
    text.append(buffer.data(), got);
  status = ::pclose(pipe);
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (file.read(buffer.data(), buffer.size()), file.gcount() > 0)
    text.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
  return text;
}

class Compiled : public std::regex {
 public:
  using std::regex::regex;
  static const std::regex& of(const Pattern& pattern) { return *pattern.compiled_; }
};

namespace {

Groups groups_of(const std::smatch& match) { return {match.begin(), match.end()}; }

}  // namespace

Pattern::Pattern(const std::string& expression) : compiled_(std::make_shared<const Compiled>(expression)) {}

bool matches(const std::string& text, Groups& found, const Pattern& pattern) {
  std::smatch match;
  const bool does = std::regex_match(text, match, Compiled::of(pattern));
  found = groups_of(match);
  return does;
}
bool matches(const std::string& text, const Pattern& pattern) { return std::regex_match(text, Compiled::of(pattern)); }

bool has_match(const std::string& text, Groups& found, const Pattern& pattern) {
  std::smatch match;
  const bool does = std::regex_search(text, match, Compiled::of(pattern));
  found = groups_of(match);
  return does;
}
bool has_match(const std::string& text, const Pattern& pattern) {
  return std::regex_search(text, Compiled::of(pattern));
}

std::vector<Groups> all_in(const std::string& text, const Pattern& pattern) {
  std::vector<Groups> all;
  for (std::sregex_iterator at(text.begin(), text.end(), Compiled::of(pattern)), end; at != end; ++at)
    all.push_back(groups_of(*at));
  return all;
}

std::string replaced(const std::string& text, const Pattern& pattern, const std::string& with) {
  return std::regex_replace(text, Compiled::of(pattern), with);
}

}  // namespace jitunwind::test
