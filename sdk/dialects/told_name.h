// Names that JITs tell by any dialect.
#pragma once

#include <cstddef>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes. What is behind them of a name is left out.
inline constexpr std::size_t k_longest_told_name = 4096;

}  // namespace jitunwind
#pragma GCC visibility pop
