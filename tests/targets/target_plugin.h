// Instructions from a test to the library that has a list of its own.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::test {

/// plugin_described_again() goes through a frame that it describes anew. The copy of the library that was loaded for it
/// has then made the same number of changes to its list, and one more if `one_more` is set.
struct PluginDescribes {
  Addr page = 0;                 ///< of the frame; free
  bool as_the_end = false;       ///< of the stack; else as it is
  bool one_more = false;         ///< procedure elsewhere, which is registered last
  unsigned place = 0;            ///< of two for its descriptor, which are where they were in a library that is
  std::uint32_t generation = 0;  ///< which the list is said to have; 0: its own
};

}  // namespace jitunwind::test
