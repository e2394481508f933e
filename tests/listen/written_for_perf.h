// Files that engines write for perf and leave behind.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>

namespace jitunwind::test {

/// Removes the perf map and the jitdump of a process that has ended or is about to. Allocates nothing.
inline void remove_written_for_perf(pid_t process) {
  std::array<char, 64> path{};
  for (const char* const form : {"/tmp/perf-%d.map", "/tmp/jit-%d.dump"}) {
    std::snprintf(path.data(), path.size(), form, static_cast<int>(process));
    ::unlink(path.data());
  }
}

}  // namespace jitunwind::test
