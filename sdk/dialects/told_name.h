// The names that JITs report in all dialects.
#pragma once

#include <cstddef>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes. Longer names are cut.
inline constexpr std::size_t k_longest_told_name = 4096;

}  // namespace jitunwind
#pragma GCC visibility pop
