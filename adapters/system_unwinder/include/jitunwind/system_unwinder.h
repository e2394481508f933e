// The path of throw, backtrace() and pthread_cancel through registered procedures in this process.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#endif
