// How often a test repeats what it does at random.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// An emulator takes each repetition some fifty times as long as a CPU does: there an eighth of them must do. Those
/// that run on a CPU have the rest.
constexpr std::size_t repetitions(std::size_t natively) noexcept {
#ifdef JITUNWIND_EMULATED
  return natively / 8;
#else
  return natively;
#endif
}

}  // namespace jitunwind::test
