// Random descriptions: frames as compilers make them, such frames with mistakes, and directives thrown together.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/rows/row_case.h"

namespace jitunwind::test {

enum class Extremes {
  none,  ///< registers that exist, numbers that fit a frame
  all,   ///< any register, tag and number
};

struct RandomDescription {
  std::uint64_t size = 0;
  std::vector<rows::CaseRegion> regions;
};

RandomDescription random_description(const Arch& arch, std::mt19937_64& random, Extremes extremes);

}  // namespace jitunwind::test
