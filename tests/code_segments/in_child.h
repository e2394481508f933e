// Processes whose files are in a folder of their own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/code_segments/committed.h"

namespace jitunwind::test {

inline const Callee k_identity = [](void* argument) { return argument; };

/// Runs `body` in a child, with a folder for its files; returns its exit status, or 128 + the signal.
template <class Body>
int in_child(const std::string& folder, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("JITUNWIND_CODE_DIR", folder.c_str(), 1);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline std::size_t folders_in(const std::string& place) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(place), {}));
}

}  // namespace jitunwind::test
