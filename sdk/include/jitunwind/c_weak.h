/* The C interface for programs that are not linked to the library, and use it where it is loaded all the same: by
   another part of the program, or by LD_PRELOAD. Each source that would include <jitunwind/c.h> includes this header
   instead, and calls functions of the interface only if ju_available() says so. The code must be position-independent,
   as compilers make it by default. C99, C++11. docs/your_jit.md. */
#pragma once

#include "jitunwind/c.h"

/* A weak reference that nothing resolves is a null pointer, and no error of the linker's. */
#define JITUNWIND_PRAGMA(text) _Pragma(#text)
#define JITUNWIND_FUNCTION(name) JITUNWIND_PRAGMA(weak name)
#include "jitunwind/sdk/c/every_function.def"
JITUNWIND_FUNCTION(jitunwind_capture_context)
#undef JITUNWIND_FUNCTION
#undef JITUNWIND_PRAGMA

/** Whether the library is loaded, and can serve programs of these headers. If it is not 0, every function can be
    called. Thread-safe, signal-safe. */
static inline int ju_available(void) {
  return &ju_check_version != NULL && ju_check_version(JITUNWIND_VERSION, NULL) == JU_OK;
}
