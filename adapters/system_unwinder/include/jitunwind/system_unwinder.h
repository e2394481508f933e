// How throw, backtrace() and pthread_cancel pass registered procedures in this process.
#pragma once

#include "adapters/system_unwinder/system_unwinder.h"
