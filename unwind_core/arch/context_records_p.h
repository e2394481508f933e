// What a ucontext_t holds behind the registers that it always has, on CPUs where the kernel puts records there: each
// begins with its kind and its size in bytes, 4 bytes each, and the last one has kind 0.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// Vector registers are in one of the records. The kernel puts that first, but does not promise it:
/// RegisterInfo::ucontext is where they are if it is the first.
struct ContextRecords {
  std::int16_t first;  ///< offset of the first one in a ucontext_t
  std::uint16_t room;  ///< bytes for all of them
  std::uint32_t kind;  ///< of the one with vector registers
  std::uint32_t size;  ///< of that
  RegNum vector_words;  ///< pseudo register of how many words of 8 bytes a scalable vector has
};

}  // namespace jitunwind
