// The present unwinders of a Linux program, for comparison.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address.h"

namespace examples {

struct OtherWalk {
  std::string name;
  bool present = false;
  std::set<jitunwind::Addr> pcs;
  std::string said;  ///< how the walk ended
};

/// glibc's backtrace(), which is libgcc's unwinder, and libunwind if it is installed, both from the caller.
std::vector<OtherWalk> walk_with_others();

}  // namespace examples
