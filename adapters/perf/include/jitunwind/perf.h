// Registered procedures in perf and in profilers that read its files.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/perf/perf.h"
#endif
