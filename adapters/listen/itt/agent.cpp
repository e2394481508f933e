// An agent of Intel's interface for JITs: INTEL_JIT_PROFILER64 names this library to an engine, which loads it and
// calls these two functions (jitprofiling.c of ittapi).
#include "jitunwind/adapters/listen/listening_p.h"

extern "C" [[gnu::visibility("default")]] unsigned Initialize() { return 1; }

/// Returns 1, which asks the engine to continue.
extern "C" [[gnu::visibility("default")]] int NotifyEvent(int event, void* data) {
  jitunwind::hear_itt_event(event, data);
  return 1;
}
