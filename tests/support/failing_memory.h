// Memory that fails at random: malloc and its relatives, and mmap, for a thread that has asked for it. Sanitizers bring
// functions of their own, and there nothing fails. Link failing_memory.cpp.
#pragma once

#include <cstddef>

namespace jitunwind::test {

/// For as long as it lives one in `one_in` of this thread's requests fails, about. May be nested; 0: none.
class FailingMemory {
 public:
  explicit FailingMemory(unsigned one_in) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

 private:
  unsigned before_;
};

/// How many requests have failed, in the whole process.
std::size_t failed_requests() noexcept;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_is_sanitized = true;
#else
inline constexpr bool k_is_sanitized = false;
#endif

}  // namespace jitunwind::test
