// Code that engines have unmapped without a word. Whatever dialect told of it, it is forgotten in the same way: each
// keeper looks at a few of its pieces now and then.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// How many pieces the thread that follows what is written looks at each time; calls look where there is none, at one
/// in so many calls, since it is a system call.
inline constexpr std::size_t k_looked_at_each_time = 64;
inline constexpr std::uint32_t k_calls_to_a_look = 32;

}  // namespace jitunwind
