// A limit for what the reader of an input allocates: a few bytes can claim to be many. One source of a program includes
// this.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/fuzz/fuzz_check.h"

namespace jitunwind::fuzz {

/// The bytes that operator new has given to this program and has not got back, and their limit.
inline std::size_t held = 0, most_held = ~std::size_t{0};

/// During its lifetime, the program may hold some MiB more than before, and further bytes for each byte of the input.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t input) noexcept { most_held = held + k_some + k_for_each_byte * input; }
  ~MemoryLimit() { most_held = ~std::size_t{0}; }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  static constexpr std::size_t k_some = std::size_t{4} << 20, k_for_each_byte = 256;
};

}  // namespace jitunwind::fuzz

/// The C++ run-time library's calls the other one; a sanitizer's does not.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  using namespace jitunwind::fuzz;
  check(size <= most_held && held <= most_held - size, "a small input takes little memory");
  void* const memory = std::malloc(size);
  if (memory) held += ::malloc_usable_size(memory);
  return memory;
}
void* operator new(std::size_t size) {
  if (void* const memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  jitunwind::fuzz::held -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
