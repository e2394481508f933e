#include <jitunwind/jitunwind.h>

#include <cstdio>

extern "C" [[gnu::noinline]] int innermost(int n) {
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) std::puts(frame.name().c_str());
  return n;
}

extern "C" [[gnu::noinline]] int middle(int n) { return innermost(n) + 1; }
