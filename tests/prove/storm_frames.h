// Frames that descents go through and come back from, in this process's storm and in another process.
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

/// `value`, which is not returned by who returned it.
[[gnu::always_inline]] inline void* returned(void* value) {
  asm volatile("" : "+r"(value));
  return value;
}

}  // namespace jitunwind::storm
