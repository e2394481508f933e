// Counts the allocations of the test program and of the static libraries in it, by operator new and malloc, and makes
// them fail on request: jitunwind_counts_allocations() in cmake/JitunwindTest.cmake.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// Counts this thread's calls of operator new, in all its forms, and of malloc so far.
std::size_t allocations() noexcept;
/// Subtracts the calls of operator delete and free.
std::size_t allocations_held() noexcept;

/// Makes all of this thread's allocations except the first `times` fail as long as it lives.
class NoMemory {
 public:
  explicit NoMemory(std::size_t times = 0) noexcept;
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace jitunwind::test
