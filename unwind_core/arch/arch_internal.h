// This header has facts of CPUs, beside their tables, for readers of other programs' data.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind {

/// The alignment in bytes of a number of 8 bytes in a structure: psABI for i386, table 2.1; all other CPUs align them by
/// their size.
inline std::size_t alignment_of_8_bytes(const Arch& arch) noexcept { return arch.elf_machine == EM_386 ? 4 : 8; }

/// The CPU of programs that systems of this one run as well; the kernel gives registers of their threads by that CPU's
/// NT_PRSTATUS. Null: none are known.
const Arch* also_runs(const Arch& arch) noexcept;

/// Relocations of words of data in files that are not linked (the psABI's "Relocation Types"): S + A, and S + A - P. If
/// there is no addend (ELF's REL), A is the word at the place.
struct DataRelocations {
  static constexpr std::uint32_t k_none = ~std::uint32_t{0};  ///< a CPU with 32 bits has no relocation of 64 bits

  std::uint32_t absolute_64;
  std::uint32_t absolute_32;
  std::uint32_t relative_64;
  std::uint32_t relative_32;
};

}  // namespace jitunwind
