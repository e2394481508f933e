// Frames that descents pass in both directions, in this process's storm and in another process.
#pragma once

#include "tests/prove/storm_code.h"
#include "tests/prove/storm_shadow.h"

namespace jitunwind::storm {

[[gnu::noinline]] inline void* through_realigned(Callee function, void* argument, Shadow* shadow) {
  const Pushed pushed(*shadow);
  alignas(64) char room[128];
  asm volatile("" : : "r"(room) : "memory");
  return function(argument);
}

/// Returns `value` in a way that prevents a tail call, so that the calling function keeps its frame.
[[gnu::always_inline]] inline void* returned(void* value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace jitunwind::storm
