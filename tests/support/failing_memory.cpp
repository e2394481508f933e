#include "tests/support/failing_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace {

constinit thread_local unsigned one_in = 0;
std::atomic<std::size_t> failed{0};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
bool fails() noexcept {
  static constinit thread_local std::uint32_t random_state = 0;
  if (one_in == 0) return false;
  if (random_state == 0) random_state = static_cast<std::uint32_t>(::gettid()) * 2654435761u | 1;
  random_state ^= random_state << 13, random_state ^= random_state >> 17, random_state ^= random_state << 5;
  if (random_state % one_in != 0) return false;
  ++failed;
  errno = ENOMEM;
  return true;
}
#endif

}  // namespace

namespace jitunwind::test {

FailingMemory::FailingMemory(unsigned new_one_in) noexcept : before_(one_in) { one_in = new_one_in; }
FailingMemory::~FailingMemory() { one_in = before_; }
std::size_t failed_requests() noexcept { return failed; }

}  // namespace jitunwind::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) { return fails() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t number, std::size_t size) { return fails() ? nullptr : __libc_calloc(number, size); }
void* realloc(void* memory, std::size_t size) { return fails() ? nullptr : __libc_realloc(memory, size); }
void* memalign(std::size_t to, std::size_t size) { return fails() ? nullptr : __libc_memalign(to, size); }
void* aligned_alloc(std::size_t to, std::size_t size) { return fails() ? nullptr : __libc_memalign(to, size); }
int posix_memalign(void** out, std::size_t to, std::size_t size) {
  void* const memory = fails() ? nullptr : __libc_memalign(to, size);
  if (memory != nullptr) *out = memory;
  return memory != nullptr ? 0 : ENOMEM;
}
void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (fails()) return MAP_FAILED;
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
}
#endif
