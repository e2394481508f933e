#include "tests/support/malloc_calls.h"

#include <cerrno>
#include <cstddef>

namespace {

constinit thread_local bool counting = false;
constinit thread_local unsigned calls = 0;

void count() noexcept { calls += counting; }

}  // namespace

namespace jitunwind::test {

MallocCalls::MallocCalls() noexcept {
  calls = 0;
  counting = true;
}
MallocCalls::~MallocCalls() { counting = false; }
unsigned MallocCalls::count() const noexcept { return calls; }

}  // namespace jitunwind::test

// The program's allocator comes before the C library's in symbol search order, for the program and for every library.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t size) { return count(), __libc_malloc(size); }
void* calloc(std::size_t number, std::size_t size) { return count(), __libc_calloc(number, size); }
void* realloc(void* memory, std::size_t size) { return count(), __libc_realloc(memory, size); }
void* memalign(std::size_t alignment, std::size_t size) { return count(), __libc_memalign(alignment, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) { return count(), __libc_memalign(alignment, size); }
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
void free(void* memory) {
  count();
  __libc_free(memory);
}
}
