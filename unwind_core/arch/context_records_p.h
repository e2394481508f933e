// The contents of a ucontext_t after the registers that it always has, on CPUs whose kernel puts records there. Each
// record begins with its kind and its size in bytes, 4 bytes each, and the last one has kind 0.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// One of the records has the vector registers. The kernel puts that first, but does not promise it:
/// RegisterInfo::ucontext is their place if it is the first.
struct ContextRecords {
  std::int16_t first;  ///< offset of the first record in a ucontext_t
  std::uint16_t room;  ///< bytes for all of them
  std::uint32_t kind;  ///< kind of the record with vector registers
  std::uint32_t size;  ///< size of that record
  RegNum vector_words;  ///< pseudo register: number of 8-byte words of a scalable vector
  /// That number, which each thread may change; 0: the CPU has none. Null on other machines. Signal-safe.
  std::uint64_t (*count_vector_words)() noexcept;
};

}  // namespace jitunwind
