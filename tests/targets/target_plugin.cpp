// A library with a copy of ours of its own, and a procedure in that one's list.
#include "tests/support/jit_frame.h"

/// In no table but that of its file.
extern "C" [[gnu::visibility("hidden"), gnu::noinline]] void* plugin_inner(jitunwind::test::JitFrame::Callee callee,
                                                                           void* argument) {
  static jitunwind::test::JitFrame frame;
  void* const result = frame(callee, argument);
  asm volatile("");  // no tail call
  return result;
}

extern "C" [[gnu::visibility("default")]] void* plugin_call(jitunwind::test::JitFrame::Callee callee, void* argument) {
  void* const result = plugin_inner(callee, argument);
  asm volatile("");  // no tail call
  return result;
}
