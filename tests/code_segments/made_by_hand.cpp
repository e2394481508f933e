// Bytes that are written by hand, and committed.
#include "tests/code_segments/committed.h"
#include "tests/code_segments/made_functions.h"

jitunwind::test::MadeFunctions jitunwind::test::make_functions(CodeSegments& segments) {
  const Addr outer = commit_frame(segments, "jit_outer");
  return {outer, commit_frame(segments, "jit_inner")};
}
