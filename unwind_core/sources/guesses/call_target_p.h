// The target of the call before a return address, and the check that the walk came from there.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// The target of an operand with these registers; `sp` replaces their SP. Empty: a register is not known, or the memory
/// cannot be read.
std::optional<Addr> target_by(const JumpOperand& operand, const RegisterFile& registers, Addr sp,
                              const AddressSpace& space, MemoryWindow& window) noexcept;

/// A return address tells the end of the call before it, but not its start: every possible call that ends there is
/// read.
class CallTargets {
 public:
  /// Registers and SP are those at the time of the call, as far as they are known. Calls by registers that have other
  /// values by now have other targets here, too: the caller must check that they lead to the code in question.
  CallTargets(const Lookup& lookup, const RegisterFile& registers, Addr return_address, Addr sp_at_call) noexcept;

  std::span<const Addr> all() const noexcept { return {targets_.data(), count_}; }
  /// The call is by a register or by memory, which may have had any value, and its bytes cannot be read as a call of
  /// certain code.
  bool may_be_others() const noexcept { return is_indirect_ && !is_direct_; }

 private:
  void add(Addr target) noexcept;

  std::array<Addr, 4> targets_{};
  std::size_t count_ = 0;
  bool is_indirect_ = false;
  bool is_direct_ = false;
};

}  // namespace jitunwind
