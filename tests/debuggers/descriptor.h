// A definition of GDB's interface that is not this library's, in a library.
#pragma once

#include <atomic>

#include "adapters/gdb_jit/jit_interface_p.h"

namespace debuggers_test {

struct OtherDescriptor {
  jit_descriptor* descriptor = nullptr;
  const std::atomic<unsigned>* told = nullptr;  ///< how often a debugger that reads this one is told
};

}  // namespace debuggers_test
