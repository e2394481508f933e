// Checks of descriptions against their code, for unit tests of JIT compilers. Library jitunwind-testing, CMake target
// jitunwind::testing. docs/testing.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/testing/check_by_stepping.h"
#endif
