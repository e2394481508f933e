// The perf map of this process, followed while the process appends to it.
#pragma once

#include <unistd.h>

#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/perf_map.h"

namespace jitunwind {

/// Of /tmp/perf-PID.map. One thread.
class MapFollower {
 public:
  MapFollower();

  /// What has come since the last time. A file that was made anew, or cut, is read from its begin. One that is not the
  /// owner's is not read. Throws std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  GrowingFile file_;
  PerfMapReader reader_;
};

}  // namespace jitunwind
