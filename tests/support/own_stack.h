// Of the machine's own stack, on any CPU: calls through a C function pointer, and what an interrupted stack begins
// with.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/sdk/walk.h"

namespace jitunwind::test {

using Body = std::function<void()>;
inline void call_body(void* body) { (*static_cast<Body*>(body))(); }

/// What begins an interrupted stack.
inline std::vector<std::string> names_at(const void* ucontext, std::size_t count) {
  std::vector<std::string> names;
  Walk walk = walk_interrupted(ucontext);
  for (const Frame& frame : walk) {
    names.push_back(frame.name());
    if (names.size() == count) return names;
  }
  names.push_back(walk.why());
  return names;
}

}  // namespace jitunwind::test
