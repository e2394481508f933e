// A profile as the files that people keep of it.
#pragma once

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/profile/profile_p.h"

namespace jitunwind::jitstack {

/// Writes NAME.folded and NAME.svg, and says so on stdout behind the line `said`; what fails, on stderr.
ExitStatus write_profile(const Profile& profile, const std::string& name, const std::string& title,
                         const std::string& said);

}  // namespace jitunwind::jitstack
