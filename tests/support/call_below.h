// Calls of a procedure under test from different places of the stack.
#pragma once

#include <alloca.h>

#include <cstddef>

extern "C" void jitunwind_marked_call(void (*target)());

namespace jitunwind::test {

/// Calls it with SP `bytes`, a multiple of 16, below where it would be otherwise.
[[gnu::noinline]] inline void call_below(void (*target)(), std::size_t bytes) {
  void* volatile memory = alloca(bytes);
  (void)memory;
  jitunwind_marked_call(target);
}

}  // namespace jitunwind::test
