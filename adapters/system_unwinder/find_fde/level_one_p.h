// The interface between the unwinder of the C++ run-time and this library. No public header has it, but it is fixed
// since libgcc_s exported it (GCC_3.0).
#pragma once

#include <cstdint>

namespace jitunwind {

/// Bases of an FDE's pointers, and the beginning of its code.
struct EhBases {
  void* text;
  void* data;
  void* function;
};
static_assert(sizeof(EhBases) == 3 * sizeof(void*));

/// FDE of the code at `pc`, an address within the call, or null. No definition throws.
using FindFde = const void*(void* pc, EhBases* bases) noexcept;

inline std::uintptr_t address_of(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }
inline void* pointer_to(std::uint64_t at) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

}  // namespace jitunwind
