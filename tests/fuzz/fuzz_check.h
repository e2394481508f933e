// Helpers of all fuzz targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

#include "tests/support/bytes_memory.h"

namespace jitunwind::fuzz {

/// Reports a finding: libFuzzer keeps the input of a program that aborts.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The input itself, at one address.
using InputMemory = test::BytesMemory;

}  // namespace jitunwind::fuzz
