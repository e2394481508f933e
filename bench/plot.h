// Plots as SVG.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"

namespace bench {

/// Both axes are logarithmic. Returns "" when there are no points.
std::string svg_plot(const std::string& title, const std::string& x_title, const std::vector<Line>& lines);

}  // namespace bench
