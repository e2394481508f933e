// A stack of script functions and C++ functions, in a form for users.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace toy {

class Machine;

struct TracedFrame {
  std::string name;
  std::string place;  ///< "primes.toy:7"; "C++" outside of scripts
};

/// The innermost frame is first, main() last.
using StackTrace = std::vector<TracedFrame>;

/// The stack of the exception that the caller's callers are throwing: from the throw on.
StackTrace trace_of_throw(const Machine& machine);

/// A line for each frame; very deep stacks have the first and the last frames.
std::ostream& operator<<(std::ostream& out, const StackTrace& trace);

}  // namespace toy
