// Counts what the test program and the static libraries in it allocate, with operator new and malloc, which find no
// memory where a test says so: jitunwind_counts_allocations() in cmake/JitunwindTest.cmake.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// Calls of operator new, in any of its forms, and of malloc by this thread so far.
std::size_t allocations() noexcept;
/// Less those of operator delete and free.
std::size_t allocations_held() noexcept;

/// For as long as it lives this thread finds no memory by these, but for the first few times.
class NoMemory {
 public:
  explicit NoMemory(std::size_t times = 0) noexcept;
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace jitunwind::test
