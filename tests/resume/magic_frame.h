// magic_frame.S: frames to resume in.
#pragma once

#include <cstdint>

extern "C" {
struct Arrival {
  std::uint64_t rbx, rbp, r12, r13, r14, r15, rax, rdx;
  std::uint64_t at_landing;
};
void magic_frame(void (*f)(void*), void* argument, Arrival* out);
long pushing_frame(void (*f)(void*), void* argument);
extern const char magic_frame_behind_call[], magic_frame_landing[];
extern const char pushing_frame_behind_call[], pushing_frame_landing[];
}

namespace jitunwind::test {

inline constexpr std::uint64_t k_magic = 0x4d00'0000'0000'0000;

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

inline bool preserved_are_magic(const Arrival& a) {
  return a.rbx == k_magic + 3 && a.rbp == k_magic + 6 && a.r12 == k_magic + 12 && a.r13 == k_magic + 13 &&
         a.r14 == k_magic + 14 && a.r15 == k_magic + 15;
}

}  // namespace jitunwind::test
