// This thread's processor time, which Google Benchmark also counts when it measures itself.
#pragma once

#include <time.h>

namespace bench {

inline double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace bench
