// Other threads of this process, other processes, core files and samples: docs/targets.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/sdk/target.h"
#include "jitunwind/sdk/walk_thread.h"
#endif
