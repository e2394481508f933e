// Ratios of a run beside those that were stored: what has become slower.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace bench {

using Ratios = std::map<std::string, double>;

/// A line for each ratio that has grown by more than half (less than that is the machine's noise), for each that is not
/// stored, and one where nothing is stored: none. What is stored and was not measured is nobody's mistake: filters and
/// peers that are not installed leave it out. "" where there is nothing to say.
std::string compare_with_baseline(const std::optional<Ratios>& stored, const Ratios& measured);

}  // namespace bench
