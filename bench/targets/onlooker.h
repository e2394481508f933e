// Who looks at the stacks of another process: one file each, because their headers exclude each other.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

namespace bench {

/// Looks at one process that the calling thread traces and has stopped.
class Onlooker {
 public:
  virtual ~Onlooker() = default;
  /// Frames of a thread, each with its pc; 0: it cannot be walked.
  virtual std::size_t walk(pid_t thread) = 0;
};

std::unique_ptr<Onlooker> onlooker_of_jitunwind(pid_t process);
std::unique_ptr<Onlooker> onlooker_of_libdw(pid_t process);
std::unique_ptr<Onlooker> onlooker_of_nongnu(pid_t process);

}  // namespace bench
