// All CPUs that have a table, in each of their byte orders: for tests whose parameter is a CPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::test {

inline std::vector<Arch> all_targets() {
  std::vector<Arch> targets;
  for (const Arch* arch : all_arches()) {
    targets.push_back(*arch);
    if (arch->bi_endian) targets.push_back(with_byte_order(*arch, !arch->big_endian));
  }
  return targets;
}

/// Names a parameter in a form that GoogleTest accepts: "x86_64_little".
inline std::string target_name(const testing::TestParamInfo<Arch>& info) {
  std::string name = info.param.name + std::string(info.param.big_endian ? "_big" : "_little");
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace jitunwind::test
