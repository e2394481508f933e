// The perf map of this process, followed while the process appends to it.
#pragma once

#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/perf_map.h"

namespace jitunwind {

/// Of /tmp/perf-PID.map. One thread.
class MapFollower {
 public:
  MapFollower();

  /// What has come since the last time. A file that was made anew, or cut, is read from its begin. Throws
  /// std::bad_alloc.
  void look();

 private:
  GrowingFile file_;
  PerfMapReader reader_;
};

}  // namespace jitunwind
