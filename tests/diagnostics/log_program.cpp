// Registers a procedure, walks, and cancels it. The environment decides which log is printed.
#include <cstdio>

#include "jitunwind/sdk/walk.h"
#include "tests/support/jit_frame.h"

int main() {
  const jitunwind::test::JitFrame frame;
  frame(
      [](void*) -> void* {
        for (const jitunwind::Frame& each : jitunwind::walk_here()) (void)each;
        return nullptr;
      },
      nullptr);
  std::puts("done");
  return 0;
}
