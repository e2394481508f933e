// Counts what the test program allocates with operator new. Link counted_allocations.cpp.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// Calls of operator new by this thread so far, in any of its forms.
std::size_t allocations() noexcept;

}  // namespace jitunwind::test
