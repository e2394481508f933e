// The perf map of this process, followed while the process appends to it.
#pragma once

#include <unistd.h>

#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/perf_map.h"

namespace jitunwind {

/// Follows /tmp/perf-PID.map. Used by one thread.
class MapFollower {
 public:
  MapFollower();

  /// Reads the lines since the last time. A file that was made anew, or truncated, is read from its start. A file of
  /// another owner is not read. Throws std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  GrowingFile file_;
  PerfMapReader reader_;
};

}  // namespace jitunwind
