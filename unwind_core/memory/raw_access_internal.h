// Loads from memory that a walk has proven readable, although others may write to it; and what sanitizers must not
// change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/page_internal.h"

// AddressSanitizer poisons frames of other functions, red zones and freed frames, and other threads may write to memory
// that a walk reads. An unwinder has to read both, so the raw accesses are not instrumented. They are volatile because
// the compiler could otherwise replace them by a call of memcpy, which the sanitizers intercept.
#define JITUNWIND_RAW_ACCESS __attribute__((no_sanitize_address, no_sanitize_thread))

// ThreadSanitizer keeps a stack of its own, of functions that were entered and not left. A function that is left by a
// jump must not be on it. AddressSanitizer may have variables elsewhere than on the stack, which such functions need
// there.
#define JITUNWIND_LEFT_BY_A_JUMP __attribute__((no_sanitize_thread, no_sanitize_address))

namespace jitunwind {

/// Reads a plain structure of this machine's layout and byte order. False: not all of it can be read.
template <class T>
bool read_object(const Memory& memory, MemoryWindow& window, Addr at, T& into) noexcept {
  return memory.read(at, std::as_writable_bytes(std::span(&into, 1)), window) == sizeof into;
}

using UnalignedWord __attribute__((may_alias, aligned(1))) = std::uintptr_t;
using UnalignedEightBytes __attribute__((may_alias, aligned(1))) = std::uint64_t;

/// A word of this machine, in its byte order, at any alignment.
JITUNWIND_RAW_ACCESS inline std::uint64_t raw_word(const std::byte* at) noexcept {
  return *reinterpret_cast<const volatile UnalignedWord*>(at);
}
JITUNWIND_RAW_ACCESS inline std::uint64_t raw_eight_bytes(const std::byte* at) noexcept {
  return *reinterpret_cast<const volatile UnalignedEightBytes*>(at);
}
JITUNWIND_RAW_ACCESS inline Addr raw_word(Addr at) noexcept { return raw_word(pointer_to<const std::byte>(at)); }

}  // namespace jitunwind
