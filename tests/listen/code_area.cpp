// Tests report code in an area that is otherwise empty. It is mapped, since code that is not mapped is forgotten. A
// thread forgets or follows code only in tests that ask for it.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "jitunwind/adapters/listen/listen.h"

namespace {

[[gnu::constructor]] void begin_without_thread() { jitunwind::listen(jitunwind::k_silent_dialects); }

/// If a sanitizer's shadow is already there, the area is mapped anyway.
[[gnu::constructor]] void map_code_area() {
  constexpr std::uintptr_t k_code = 0x5'0000'0000;
  constexpr std::size_t k_size = std::size_t{4} << 20;
  (void)::mmap(reinterpret_cast<void*>(k_code), k_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
               -1, 0);
}

}  // namespace
