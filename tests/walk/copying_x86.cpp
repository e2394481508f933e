// memcpy() and memmove() for programs whose walks begin at any instruction. glibc 2.36 has wrong call frame information
// for this CPU's: multiarch/memcpy-sse2-unaligned.S for copies of at most 16 bytes, multiarch/memcpy-ssse3.S and
// i686/memcpy.S elsewhere. These here are the compiler's frames around one instruction. The C library's own calls stay
// with its functions.
#include <cstddef>
#include <cstdint>

extern "C" {

void* memcpy(void* __restrict to, const void* __restrict from, std::size_t count) noexcept {
  void* at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(count) : : "memory");
  return to;
}

void* memmove(void* to, const void* from, std::size_t count) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(to), other = reinterpret_cast<std::uintptr_t>(from);
  if (begin - other >= count) return memcpy(to, from, count);
  auto* last = static_cast<char*>(to) + count - 1;
  auto* last_from = static_cast<const char*>(from) + count - 1;
  asm volatile("std; rep movsb; cld" : "+D"(last), "+S"(last_from), "+c"(count) : : "memory");
  return to;
}

}  // extern "C"
