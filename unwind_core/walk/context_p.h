// The parts of the kernel's ucontext_t that resuming changes, and the length of vectors in targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind {

/// Ends the records behind the one with vector registers, if that is the first: what is behind it, wider registers
/// among it, no call preserves. `ucontext` is writable host memory. Signal-safe.
void end_records_behind_vectors(const Arch& arch, void* ucontext) noexcept;

/// How long scalable vectors are in a thread of a target.
class [[gnu::visibility("default")]] VectorWords {
 public:
  /// Takes registers of kind NT_ARM_SVE or NT_ARM_SSVE, of which the head suffices, in any order. Other kinds are
  /// ignored. Signal-safe.
  void take(unsigned kind, std::span<const std::byte> regset, bool big_endian) noexcept;
  /// Adds nothing if the CPU has no such vectors, or no length was taken. Signal-safe.
  void add_to(const Arch& arch, RegisterFile& registers) const noexcept;

 private:
  std::uint64_t count_ = 0;
};

}  // namespace jitunwind
