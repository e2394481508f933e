// A stack of script functions and C++ functions, as a user wants to read it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace toy {

class Machine;

struct TracedFrame {
  std::string name;
  std::string place;  ///< "primes.toy:7"; "C++" of what is no script
};

/// Innermost first, main() last.
using StackTrace = std::vector<TracedFrame>;

/// Of the exception that is being thrown by the caller's callers: from where it was thrown.
StackTrace trace_of_throw(const Machine& machine);

/// A line for each frame; of very deep stacks the first and the last.
std::ostream& operator<<(std::ostream& out, const StackTrace& trace);

}  // namespace toy
