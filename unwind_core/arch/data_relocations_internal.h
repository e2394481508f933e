// Relocations of words of data in files that are not linked (the psABI's "Relocation Types"): S + A, and S + A - P.
#pragma once

#include <cstdint>

namespace jitunwind {

/// If there is no addend (ELF's REL), A is the word at the place.
struct DataRelocations {
  static constexpr std::uint32_t k_none = ~std::uint32_t{0};  ///< a CPU with 32 bits has no relocation of 64 bits

  std::uint32_t absolute_64;
  std::uint32_t absolute_32;
  std::uint32_t relative_64;
  std::uint32_t relative_32;
};

}  // namespace jitunwind
