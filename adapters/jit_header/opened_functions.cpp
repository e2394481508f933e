// Headers of JITs find ju_jit_functions() in a library that needs the core alone, and that a program may have been
// started with: libjitunwind-listen. libjitunwind has the functions, and needs the C++ run-time library. It is opened
// when the first header asks, so that programs without such a JIT are started without it.
//
// The core is in the process already, so that libjitunwind and the library that has this object have one registry. If a
// program opens that library late, libjitunwind is opened if announcements wait for it.
#include "jitunwind/adapters/jit_header/come_p.h"
#include "jitunwind/unwind_core/above_internal.h"

/// Not signal-safe, as the search of the header that calls it: jitunwind_jit.h. Null: the library is not there; calls
/// of the object with that header end there from then on.
extern "C" __attribute__((visibility("default"))) const ju_jit_table* ju_jit_functions(unsigned version) {
  void* const functions = jitunwind::open_above("ju_jit_functions");
  return functions != nullptr ? reinterpret_cast<ju_jit_functions_t*>(functions)(version) : nullptr;
}

[[gnu::constructor]] static void come() noexcept { jitunwind::jit_header::come_to_those_that_wait(ju_jit_functions); }
