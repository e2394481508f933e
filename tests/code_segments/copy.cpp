// Another copy of this library, in a library of its own.
#include "tests/code_segments/committed.h"

extern "C" [[gnu::visibility("default")]] jitunwind::Addr commit_in_copy(const char* name) {
  static jitunwind::CodeSegments segments;
  return jitunwind::test::commit_frame(segments, name);
}
