// Writes a profile to files.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/profile/profile_p.h"

namespace jitunwind::jitstack {

/// Writes NAME.folded and NAME.svg, and lists them on stdout below the line `said`. Errors go to stderr.
ExitStatus write_profile(const Profile& profile, const std::string& name, const std::string& title,
                         const std::string& said);

}  // namespace jitunwind::jitstack
