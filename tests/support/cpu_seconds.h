// The CPU time of a thread, which the load of the machine does not change.
#pragma once

#include <time.h>

namespace jitunwind::test {

inline double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace jitunwind::test
