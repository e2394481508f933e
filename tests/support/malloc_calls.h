// Counts calls of the C library's allocator. Link malloc_calls.cpp; not with a sanitizer, which brings its own.
#pragma once

namespace jitunwind::test {

/// For as long as it lives this thread's calls of malloc and its relatives are counted, free among them. In a handler
/// too; one at a time.
class MallocCalls {
 public:
  MallocCalls() noexcept;
  ~MallocCalls();
  MallocCalls(const MallocCalls&) = delete;
  MallocCalls& operator=(const MallocCalls&) = delete;
  unsigned count() const noexcept;
};

}  // namespace jitunwind::test
