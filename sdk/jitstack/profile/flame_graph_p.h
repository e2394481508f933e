// Draws a profile as one SVG file that needs neither fonts nor scripts.
#pragma once

#include <string>

#include "jitunwind/sdk/jitstack/profile/profile_p.h"

namespace jitunwind::jitstack {

/// Draws callers below and callees above, each as wide as it is frequent, and callees in the order of their names.
/// Frames narrower than a third of a pixel, or higher than 1000 frames, are left out. `title` and `subtitle` are
/// escaped here.
std::string flame_graph(const Profile& profile, const std::string& title, const std::string& subtitle);

}  // namespace jitunwind::jitstack
