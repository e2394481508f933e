// Two functions in code segments, made by one of the adapters. Each saves the frame pointer's register, overwrites it,
// and calls its first argument with the second.
#pragma once

#include "jitunwind/adapters/code_segments/code_segments.h"

namespace jitunwind::test {

struct MadeFunctions {
  Addr outer = 0;  ///< jit_outer
  Addr inner = 0;  ///< jit_inner
};

/// Ends the process if one cannot be made. The functions stay until the process ends.
MadeFunctions make_functions(CodeSegments& segments);

}  // namespace jitunwind::test
