// The interface between the measurements of another process's stacks and the libraries that look at it. Each library
// has a program of its own, because their headers exclude each other and their releases vary.
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
  /// Walks a thread and gets the pc of each frame. Returns the number of frames, 0 when the thread cannot be walked.
  virtual std::size_t walk(pid_t thread) = 0;
};

/// A way to look at a process, and its properties.
struct Way {
  const char* name;
  std::unique_ptr<Onlooker> (*look_at)(pid_t process);
  bool knows_registered = false;
  const char* program = nullptr;  ///< prints the stacks of a process; null if there is no such program
  std::string command{};          ///< runs the program, when the process's number is appended
};

// Each program implements the following functions.

Way way();
/// Adds the measurements that only this way has.
void add_own_benchmarks();

/// Joins its arguments: "50", "/", "x" -> "50/x".
template <class... Arguments>
std::string joined(const Arguments&... arguments) {
  std::string all;
  ((all += arguments), ...);
  return all;
}

}  // namespace bench
