// Of the machine's own stack, on any CPU: calls through a C function pointer, what an interrupted stack begins with,
// and its frames by their pcs.
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

/// At the frame of a walk from here that has this pc. What a signal interrupted at an instruction that traps would trap
/// for ever where no way leads to it, and so the program ends.
inline Cursor cursor_at_pc(Addr pc) {
  Walk walk = walk_here();
  for (const Frame& frame : walk)
    if (frame.pc() == pc) return frame.cursor();
  std::fprintf(stderr, "no way to the frame at 0x%llx: %s\n", static_cast<unsigned long long>(pc), walk.why().c_str());
  std::_Exit(1);
}

}  // namespace jitunwind::test
