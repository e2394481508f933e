// How throw, backtrace() and pthread_cancel pass registered procedures in this process.
#pragma once

#include "sdk/language.h"

#if __cplusplus >= 202002L
#include "adapters/system_unwinder/system_unwinder.h"
#endif
