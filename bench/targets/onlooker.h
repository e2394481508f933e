// The seam between the measurements of another process's stacks and those who look at it: one program for each, because
// their headers exclude each other and their libraries come in several releases.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace bench {

/// Looks at one process that the calling thread traces and has stopped.
class Onlooker {
 public:
  virtual ~Onlooker() = default;
  /// Frames of a thread, each with its pc; 0: it cannot be walked.
  virtual std::size_t walk(pid_t thread) = 0;
};

/// A way to look, and what comes with it.
struct Way {
  const char* name;
  std::unique_ptr<Onlooker> (*look_at)(pid_t process);
  bool knows_registered = false;
  const char* program = nullptr;  ///< prints the stacks of a process; none: there is no such program
  std::string command{};          ///< that runs it, without the process's number
};

// One implementation a program.

Way way();
/// What is measured of this way alone.
void add_own_benchmarks();

/// "50", "/", "x" -> "50/x".
template <class... Arguments>
std::string joined(const Arguments&... arguments) {
  std::string all;
  ((all += arguments), ...);
  return all;
}

}  // namespace bench
