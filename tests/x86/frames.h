// frames.S: frames to walk from, to resume in and to throw through.
#pragma once

#include <array>
#include <cstdint>

#include "jitunwind/unwind_core/arch/arch.h"

extern "C" {
struct X86Arrival {
  std::uint32_t ebx, ebp, esi, edi;
  std::uint32_t eax, edx;
  std::uint32_t at_landing;
};
/// Calls f(argument) with a magic number in each register that calls preserve, and writes down what they, eax and edx
/// hold behind the call, or at the landing pad.
void x86_magic(void (*f)(void*), void* argument, X86Arrival* out);
extern const char x86_magic_behind_call[], x86_magic_landing[];

/// x + 1. Traps (SIGILL) without a frame, at x86_leaf_trap.
std::uint32_t x86_leaf(std::uint32_t x);
extern const char x86_leaf_trap[];
/// Traps at its first instruction.
void x86_entry();

struct X86All {
  std::array<std::uint32_t, 8> general;  ///< by DWARF number; esp is not touched
  std::array<std::array<std::uint32_t, 4>, 8> vector;
  double x87;
};
/// Loads all registers, traps at x86_all_trap, and stores them all.
void x86_all(X86All* all);
extern const char x86_all_trap[];

/// Functions without call frame information that handlers with and without SA_SIGINFO may return to.
void x86_restore_rt();
void x86_restore();
/// This does what the first one does, by other code.
void x86_restore_otherwise();
}

namespace jitunwind::test {

inline constexpr int k_trap_size = 2;  ///< ud2
inline constexpr std::uint32_t k_x86_magic = 0x4d000000;

inline bool preserved_are_magic(const X86Arrival& arrival) {
  return arrival.ebx == k_x86_magic + 3 && arrival.ebp == k_x86_magic + 5 && arrival.esi == k_x86_magic + 6 &&
         arrival.edi == k_x86_magic + 7;
}

inline Addr address_of(const char* code) { return reinterpret_cast<std::uintptr_t>(code); }

}  // namespace jitunwind::test
