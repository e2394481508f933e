// A register type per CPU, so that the compiler refuses a register of another CPU. The constants are in
// registers_<cpu>.h; their numbers are DWARF's.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// `Cpu` is the tag type of one CPU, such as x86_64::Cpu. The register is a value and is free to copy.
template <class Cpu>
class CpuRegister {
 public:
  /// Makes a register from its DWARF number, at run time. build() reports numbers that the CPU does not have.
  explicit constexpr CpuRegister(RegNum dwarf) noexcept : dwarf_(dwarf) {}

  constexpr RegNum dwarf() const noexcept { return dwarf_; }
  friend constexpr bool operator==(CpuRegister, CpuRegister) noexcept = default;

 private:
  RegNum dwarf_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
