// Code that engines have unmapped without an announcement. It is forgotten in the same way for every dialect: each
// table of code checks a few of its pieces periodically.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// The thread that polls files and lists checks so many pieces each time. If there is no such thread, one in so many
/// calls checks one piece, since the check is a system call.
inline constexpr std::size_t k_looked_at_each_time = 64;
inline constexpr std::uint32_t k_calls_to_a_look = 32;

}  // namespace jitunwind
