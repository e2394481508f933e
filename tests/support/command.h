// Runs the tools that tests make files with and compare with, and collects their results.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>

#include "tests/support/texts.h"

namespace jitunwind::test {

/// Returns what a shell command prints. The test fails if the command fails.
inline std::string output_of(const std::string& command) {
  int status = 0;
  const std::string text = output_of(command, status);
  EXPECT_EQ(status, 0) << command;
  return text;
}

struct Ended {
  int status;
  std::string text;
};

/// Returns standard output and error, and how the program ended: the exit status, or 128 + the signal.
inline Ended run(const std::string& command) {
  const auto lines = lines_of(output_of("{ " + command + " ; } 2>&1; echo $?"));
  Ended ended{std::stoi(lines.back()), {}};
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) ended.text += lines[i] + "\n";
  return ended;
}

/// A folder that is removed with the object.
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

/// Waits until the process is in one of these system calls, each of which stands for one place of its code. Returns
/// false if it does not get there.
inline bool waits_in(pid_t process, std::initializer_list<long> calls) {
  const std::string file = "/proc/" + std::to_string(process) + "/syscall";
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    long number = -1;
    if (std::ifstream(file) >> number)
      for (const long call : calls)
        if (number == call) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace jitunwind::test
