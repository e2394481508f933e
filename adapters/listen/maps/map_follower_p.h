// The perf map of this process, followed while the process appends to it.
#pragma once

#include <sys/stat.h>

#include <array>

#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/unwind_core/uncancelled_p.h"

namespace jitunwind {

/// Of /tmp/perf-PID.map. One thread.
class MapFollower {
 public:
  MapFollower() noexcept;

  /// What has come since the last time. A file that was made anew, or cut, is read from its begin. Throws
  /// std::bad_alloc.
  void look();

 private:
  void read(const ReadableFile& file, const struct stat& now);

  std::array<char, 32> path_{};
  std::array<char, 16384> piece_{};
  PerfMapReader reader_;
  ino_t inode_ = 0;
  off_t offset_ = 0;
};

}  // namespace jitunwind
