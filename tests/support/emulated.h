// How often a test repeats what it does at random.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// An emulator takes each repetition some fifty times as long as a CPU does: there an eighth of them must do, and so in
/// runs that are to take minutes. The gate has all of them.
constexpr std::size_t repetitions(std::size_t natively) noexcept {
#if defined(JITUNWIND_EMULATED) || defined(JITUNWIND_FEW_REPETITIONS)
  return natively / 8;
#else
  return natively;
#endif
}

}  // namespace jitunwind::test
