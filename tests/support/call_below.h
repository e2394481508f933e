// Calls a procedure under test from different places on the stack.
#pragma once

#include <alloca.h>

#include <cstddef>

extern "C" void jitunwind_marked_call(void (*target)());

namespace jitunwind::test {

/// Calls it with an SP that is lower by `bytes`, a multiple of 16.
[[gnu::noinline]] inline void call_below(void (*target)(), std::size_t bytes) {
  void* volatile memory = alloca(bytes);
  (void)memory;
  jitunwind_marked_call(target);
}

}  // namespace jitunwind::test
