// Running tools of Debian on the drop-in libraries and on libunwind 1.6.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <fstream>
#include <initializer_list>
#include <string>
#include <thread>

#include "tests/support/command.h"

namespace jitunwind::test {

inline const std::string k_ours = "LD_LIBRARY_PATH='" DROP_IN_FOLDER "' ";
inline const std::string k_theirs;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Until the process waits in one of these system calls, each of which is one place of its code. False: it does not
/// come to that.
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
