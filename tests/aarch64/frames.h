// frames.S: frames to walk from, to resume in and to throw through.
#pragma once

#include <sys/prctl.h>

#include <array>
#include <cstdint>

extern "C" {
struct A64Arrival {
  std::array<std::uint64_t, 11> general;  ///< x19-x29
  std::array<std::uint64_t, 8> vector;    ///< d8-d15
  std::uint64_t x0, x1;
  std::uint64_t at_landing;
};
/// Calls f(argument) with a magic number in each register that calls preserve, and writes down what they, x0 and x1
/// hold behind the call, or at the landing pad.
void a64_magic(void (*f)(void*), void* argument, A64Arrival* out);
extern const char a64_magic_behind_call[], a64_magic_landing[];

/// x + 1. Traps (SIGILL) without a frame, its return address in x30 alone, at a64_leaf_trap.
std::uint64_t a64_leaf(std::uint64_t x);
extern const char a64_leaf_trap[];
/// Traps at its first instruction.
void a64_entry();
/// Calls f(argument) with its return address signed. Returns the signature's bits; 0 where the CPU signs nothing.
std::uint64_t a64_signed(void (*f)(void*), void* argument);
extern const char a64_signed_behind_call[];
/// Calls f(argument) in a frame that signs its return address by key B.
std::uint64_t a64_signed_b(void (*f)(void*), void* argument);
extern const char a64_signed_b_behind_call[];

/// Calls f(argument) in a frame whose size its call frame information tells by DWARF's vg, the words of 8 bytes in a
/// scalable vector, which the third argument is.
void a64_scalable(void (*f)(void*), void* argument, std::uint64_t vg);
extern const char a64_scalable_behind_call[];

struct alignas(16) A64All {
  std::array<std::uint64_t, 32> general;                ///< x0-x30
  std::array<std::array<std::uint64_t, 2>, 32> vector;  ///< q0-q31
};
/// Loads every register, traps at a64_all_trap, and writes every register back.
void a64_all(A64All* registers);
extern const char a64_all_trap[];
}

namespace jitunwind::test {

/// Number of 8-byte words in a scalable vector of this thread; 0: the CPU has none.
inline std::uint64_t vector_words() {
  const int length = ::prctl(PR_SVE_GET_VL);
  return length > 0 ? static_cast<std::uint64_t>(length & PR_SVE_VL_LEN_MASK) / 8 : 0;
}

inline constexpr std::uint64_t k_a64_magic = std::uint64_t{0x4d00} << 48;

inline bool preserved_are_magic(const A64Arrival& arrival) {
  for (std::uint64_t i = 0; i < arrival.general.size(); ++i)
    if (arrival.general[i] != k_a64_magic + 19 + i) return false;
  for (std::uint64_t i = 0; i < arrival.vector.size(); ++i)
    if (arrival.vector[i] != k_a64_magic + 8 + i) return false;
  return true;
}

inline std::uint64_t address_of(const char* label) { return reinterpret_cast<std::uintptr_t>(label); }

}  // namespace jitunwind::test
