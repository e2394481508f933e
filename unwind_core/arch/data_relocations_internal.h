// Relocations of words of data in files that are not linked (the psABI's "Relocation Types"): S + A, and S + A - P.
#pragma once

#include <cstdint>

namespace jitunwind {

struct DataRelocations {
  std::uint32_t absolute_64;
  std::uint32_t absolute_32;
  std::uint32_t relative_64;
  std::uint32_t relative_32;
};

}  // namespace jitunwind
