// Counts what the test program allocates with operator new, which finds no memory where a test says so. Link
// counted_allocations.cpp.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// Calls of operator new by this thread so far, in any of its forms.
std::size_t allocations() noexcept;
/// Less those of operator delete.
std::size_t allocations_held() noexcept;

/// For as long as it lives this thread's operator new finds no memory.
class NoMemory {
 public:
  NoMemory() noexcept;
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace jitunwind::test
