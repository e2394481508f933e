// The number of repetitions of random tests.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// An emulator takes about fifty times as long as a CPU for each repetition. An eighth of them must do there, and in
/// runs that are to take minutes. A sanitizer takes about five times as long, and runs a fourth. The gate runs all of
/// them without either. A test's bounds hold with each of these numbers: `./dev test` shows whether they do.
constexpr std::size_t repetitions(std::size_t natively) noexcept {
#if defined(JITUNWIND_EMULATED) || defined(JITUNWIND_FEW_REPETITIONS)
  return natively / 8;
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return natively / 4;
#else
  return natively;
#endif
}

}  // namespace jitunwind::test
