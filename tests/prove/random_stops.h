// The interface between a program that is stopped at random moments and its observer.
#pragma once

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::random_stops {

inline constexpr const char* k_file_variable = "RANDOM_STOPS_FILE";
inline int signal_number() { return SIGRTMAX - 3; }

/// The main thread's stack as it sees it itself. Both processes map the file that has it; it begins as zeros.
struct OwnWalk {
  struct Seen {
    Addr pc;
    RowOrigin origin;
  };
  /// The program stands in front of main() until it may go; it is asked; it has walked.
  static constexpr int k_ready = 1, k_go = 2, k_done = 3;
  std::atomic<int> state;
  std::size_t count;
  StopReason stop;
  std::array<char, 128> error;  ///< what the walk ended with
  std::array<Seen, 1024> frames;
};

}  // namespace jitunwind::random_stops
