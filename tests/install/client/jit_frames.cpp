#include <jitunwind/jitunwind.h>

#include <cstdio>

void innermost() {
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
}
