// Helpers for the machine's own stack, on any CPU: calls through a C function pointer, the innermost names of an
// interrupted stack, and frames by their pcs.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/sdk/walk.h"

namespace jitunwind::test {

using Body = std::function<void()>;
inline void call_body(void* body) { (*static_cast<Body*>(body))(); }

/// Returns the names of the innermost frames of an interrupted stack.
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

/// Returns a cursor at the frame with this pc, in a walk from here. The program ends if there is no such frame: a
/// handler that returns to a trapping instruction without having moved on would trap for ever.
inline Cursor cursor_at_pc(Addr pc) {
  Walk walk = walk_here();
  for (const Frame& frame : walk)
    if (frame.pc() == pc) return frame.cursor();
  std::fprintf(stderr, "no way to the frame at 0x%llx: %s\n", static_cast<unsigned long long>(pc), walk.why().c_str());
  std::_Exit(1);
}

}  // namespace jitunwind::test
