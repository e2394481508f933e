// Looking at a process again and again for a while.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"

namespace jitunwind::jitstack {

/// Writes OUTPUT.folded and OUTPUT.svg, and says so on stdout. SIGINT and SIGTERM end it early, as does the end of the
/// process; what was seen until then is written.
ExitStatus watch(const Options& options);

}  // namespace jitunwind::jitstack
