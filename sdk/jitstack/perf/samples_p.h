// Shows the samples of a perf.data file as stacks.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"

namespace jitunwind::jitstack {

/// Prints the stack of each sample, or writes a profile of the samples if Options::output is set.
ExitStatus show_samples(const Options& options);

}  // namespace jitunwind::jitstack
