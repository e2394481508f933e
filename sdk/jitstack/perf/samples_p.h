// The samples that perf has taken, as stacks.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"

namespace jitunwind::jitstack {

/// Prints the stack of each sample; with Options::output writes a profile of them instead.
ExitStatus show_samples(const Options& options);

}  // namespace jitunwind::jitstack
