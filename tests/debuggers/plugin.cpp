// A library with a copy of its own of ours.
#include "tests/debuggers/jit_code.h"

extern "C" [[gnu::visibility("default")]] void (*plugin_code(const char* shape, const char* name, void (*callee)()))() {
  return (new debuggers_test::JitCode(shape, name, callee))->entry();
}
