// The jitdumps of this process, followed while its engines append to them.
#pragma once

#include <list>
#include <string>

#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/jitdump.h"

namespace jitunwind {

/// Dumps are found as perf finds them, by a page of them that is mapped as code. One thread.
class DumpFollower {
 public:
  /// What has come since the last time; new dumps are looked for once a second. Throws std::bad_alloc.
  void look();

 private:
  static constexpr unsigned k_looks_in_a_second = 100;
  struct Dump {
    GrowingFile file;
    JitDumpReader reader{};
  };

  void find_dumps();

  std::list<Dump> dumps_;
  unsigned looks_ = 0;
};

}  // namespace jitunwind
