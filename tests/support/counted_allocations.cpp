#include "tests/support/counted_allocations.h"

#include <cstdlib>
#include <new>

// The linker's --wrap redirects malloc and free to the __wrap_ functions.
extern "C" {
void* __real_malloc(std::size_t size);
void __real_free(void* memory);
void* __wrap_malloc(std::size_t size);
void __wrap_free(void* memory);
}

namespace {

constexpr std::size_t k_any = static_cast<std::size_t>(-1);
thread_local std::size_t count = 0, given_back = 0;
thread_local std::size_t last = k_any;  // `count` never exceeds it

constexpr auto k_usual = std::align_val_t{__STDCPP_DEFAULT_NEW_ALIGNMENT__};

void* allocate(std::size_t size, std::align_val_t to) noexcept {
  if (count == last) return nullptr;
  ++count;
  const auto alignment = static_cast<std::size_t>(to);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* allocate_or_throw(std::size_t size, std::align_val_t to) {
  if (void* const memory = allocate(size, to)) return memory;
  throw std::bad_alloc();
}
void give_back(void* memory) noexcept {
  given_back += memory != nullptr;
  __real_free(memory);
}

}  // namespace

namespace jitunwind::test {

std::size_t allocations() noexcept { return count; }
std::size_t allocations_held() noexcept { return count - given_back; }

NoMemory::NoMemory(std::size_t times) noexcept { last = count + times; }
NoMemory::~NoMemory() { last = k_any; }

}  // namespace jitunwind::test

extern "C" {
void* __wrap_malloc(std::size_t size) {
  if (count == last) return nullptr;
  ++count;
  return __real_malloc(size);
}
void __wrap_free(void* memory) {
  given_back += memory != nullptr;
  __real_free(memory);
}
}

void* operator new(std::size_t size) { return allocate_or_throw(size, k_usual); }
void* operator new(std::size_t size, std::align_val_t to) { return allocate_or_throw(size, to); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, k_usual); }
void* operator new(std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept { return allocate(size, to); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
