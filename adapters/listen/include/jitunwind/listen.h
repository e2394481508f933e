// Hears and registers the code that JITs announce to others: library jitunwind-listen, CMake target jitunwind::listen.
// docs/listen.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/listen/listen.h"
#endif
