// Makes malloc, its relatives, and mmap fail at random, for a thread that asks for it. Nothing fails under sanitizers,
// which have functions of their own. Link failing_memory.cpp.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// Makes about one in `one_in` of this thread's requests fail as long as it lives; 0: none. Objects may be nested.
class FailingMemory {
 public:
  explicit FailingMemory(unsigned one_in) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

 private:
  unsigned before_;
};

/// Counts the failed requests of the whole process.
std::size_t failed_requests() noexcept;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_is_sanitized = true;
#else
inline constexpr bool k_is_sanitized = false;
#endif

}  // namespace jitunwind::test
