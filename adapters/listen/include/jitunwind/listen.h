// What JITs say of their code to others, heard and registered: library jitunwind-listen, CMake target
// jitunwind::listen. docs/listen.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/listen/listen.h"
#endif
