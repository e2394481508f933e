// A register that knows its CPU, so that the compiler refuses a register of another one. The constants are in
// registers_<cpu>.h; numbers are DWARF's and are checked against unwind_core/arch.
#pragma once

#include "jitunwind/unwind_core/arch/arch.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// `Cpu` is the tag type of one CPU, such as x86_64::Cpu. A value, free to copy.
template <class Cpu>
class CpuRegister {
 public:
  /// By DWARF number, for registers that are chosen at run time. build() reports numbers that the CPU does not have.
  explicit constexpr CpuRegister(RegNum dwarf) noexcept : dwarf_(dwarf) {}

  constexpr RegNum dwarf() const noexcept { return dwarf_; }
  friend constexpr bool operator==(CpuRegister, CpuRegister) noexcept = default;

 private:
  RegNum dwarf_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
