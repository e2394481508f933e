// Counts calls of the C library's allocator. Link malloc_calls.cpp; not with a sanitizer, which brings its own.
#pragma once

namespace jitunwind::test {

/// Counts this thread's calls of malloc and its relatives, including free, as long as it lives. Only one object at a
/// time; it may live in a handler.
class MallocCalls {
 public:
  MallocCalls() noexcept;
  ~MallocCalls();
  MallocCalls(const MallocCalls&) = delete;
  MallocCalls& operator=(const MallocCalls&) = delete;
  unsigned count() const noexcept;
};

}  // namespace jitunwind::test
