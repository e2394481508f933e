// Samples a process repeatedly for a while.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"

namespace jitunwind::jitstack {

/// Writes OUTPUT.folded, and says so on stdout. SIGINT, SIGTERM and the end of the process end it early;
/// the samples until then are written.
ExitStatus watch(const Options& options);

}  // namespace jitunwind::jitstack
