// Memory for code that tools see which were never told of it.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/code_segments/code_segments.h"
#endif
