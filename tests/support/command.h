// Runs the tools that tests compare with and make files with.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace jitunwind::test {

/// What a shell command prints. The test fails when the command does.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = ::popen(("LC_ALL=C; export LC_ALL; " + command).c_str(), "r");
  if (!pipe) {
    ADD_FAILURE() << "popen: " << command;
    return text;
  }
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;)
    text.append(buffer.data(), got);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct Ended {
  int status;
  std::string text;
};

/// Standard output and error, and how a program ended: the exit status, or 128 + the signal.
inline Ended run(const std::string& command) {
  const auto lines = lines_of(output_of("{ " + command + " ; } 2>&1; echo $?"));
  Ended ended{std::stoi(lines.back()), {}};
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) ended.text += lines[i] + "\n";
  return ended;
}

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "jitunwind_XXXXXX").string();
    if (!::mkdtemp(name.data())) ADD_FAILURE() << "mkdtemp " << name;
    path_ = std::filesystem::canonical(name);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace jitunwind::test
