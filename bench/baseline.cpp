#include "bench/baseline.h"

#include <cstdio>

namespace bench {

namespace {

constexpr double k_noise = 1.5;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

std::string compare_with_baseline(const std::optional<Ratios>& stored, const Ratios& measured) {
  if (!stored) return "Compared with no baseline: there is none, or its file is not an object of numbers\n";
  std::string slower, unknown;
  for (const auto& [name, ratio] : measured) {
    const auto before = stored->find(name);
    if (before == stored->end())
      unknown += "Not in the baseline: " + name + ": " + number(ratio) + "\n";
    else if (ratio > k_noise * before->second)
      slower += "Slower than the baseline: " + name + ": " + number(ratio) + ", was " + number(before->second) + "\n";
  }
  return slower + unknown;
}

Ratios replaced(const std::optional<Ratios>& stored, Ratios measured) {
  if (stored) measured.insert(stored->begin(), stored->end());
  return measured;
}

}  // namespace bench
