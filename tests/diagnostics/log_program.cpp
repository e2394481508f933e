// Registers a procedure, walks, and cancels it. What else it prints is what the environment asks for.
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
