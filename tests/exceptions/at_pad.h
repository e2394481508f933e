// The registers of code made at run time during a call, and what its landing pad finds in them. The header names
// nothing of this library's interface, since programs of any C++ run-time library use it.
#pragma once

#include <cstdint>

namespace jitunwind::test {

/// The code sets a preserved register, by its DWARF number, to this value.
constexpr std::uint64_t preserved_value(unsigned dwarf) { return 0x4a0000 + dwarf; }

/// Written at SP by the landing pad; the last two by the code in front of the call.
struct AtPad {
  std::uint64_t rbx, rbp, r12, r13, r14, r15;
  std::uint32_t mxcsr;
  std::uint16_t x87_control;
  std::uint64_t sp_of_call, rbp_of_call;

  std::uint64_t sp() const { return reinterpret_cast<std::uintptr_t>(this); }
  /// All preserved registers but rbp, which may be a frame pointer, have their values.
  bool has_values() const {
    return rbx == preserved_value(3) && r12 == preserved_value(12) && r13 == preserved_value(13) &&
           r14 == preserved_value(14) && r15 == preserved_value(15);
  }
  bool is_as_in_call() const { return has_values() && rbp == rbp_of_call && sp() == sp_of_call; }
};

}  // namespace jitunwind::test
