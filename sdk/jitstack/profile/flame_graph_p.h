// A profile as a picture: one SVG file that needs nothing else, neither fonts nor scripts.
#pragma once

#include <string>

#include "jitunwind/sdk/jitstack/profile/profile_p.h"

namespace jitunwind::jitstack {

/// Callers below, callees above, as wide as they are frequent; callees in the order of their names. What is narrower
/// than a third of a pixel, or higher than 1000 frames, is left out. `title` and `subtitle` are escaped here.
std::string flame_graph(const Profile& profile, const std::string& title, const std::string& subtitle);

}  // namespace jitunwind::jitstack
