// For unit tests of JIT compilers: descriptions checked against the code that they are of. Library jitunwind-testing,
// CMake target jitunwind::testing. docs/testing.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/testing/check_by_stepping.h"
#endif
