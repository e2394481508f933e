// Compares the ratios of a run with stored ones, to find what has become slower.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace bench {

using Ratios = std::map<std::string, double>;

/// Returns a line for each ratio that has grown by more than half (smaller changes are the machine's noise) and for
/// each ratio that is not stored. Returns one line when nothing is stored (`stored` is empty). Stored ratios that were
/// not measured are no mistake: filters and peers that are not installed leave them out. Returns "" when there is
/// nothing to report.
std::string compare_with_baseline(const std::optional<Ratios>& stored, const Ratios& measured);

/// Returns what is stored, if anything is, with the measured ratios in place of those of their names.
Ratios replaced(const std::optional<Ratios>& stored, Ratios measured);

}  // namespace bench
