// Where a call went that a return address tells of, and whether that is where the walk came from.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// What an operand stands for with such registers; `sp`: in place of theirs. Nothing: one is not known, or the memory
/// cannot be read.
std::optional<Addr> target_by(const JumpOperand& operand, const RegisterFile& registers, Addr sp,
                              const AddressSpace& space, MemoryWindow& window) noexcept;

/// A return address tells where the call in front of it ends, not where it begins: what it may be is read in each way.
class CallTargets {
 public:
  /// With registers and SP as they were when the call was made, as far as that is known. Calls by registers that have
  /// other values by then have other targets here, too: whoever asks must see that they lead to the code in question.
  CallTargets(const Lookup& lookup, const RegisterFile& registers, Addr return_address, Addr sp_at_call) noexcept;

  std::span<const Addr> all() const noexcept { return {targets_.data(), count_}; }
  /// The call is by a register or by memory, which may have had any value, and cannot be read as one of certain code.
  bool may_be_others() const noexcept { return is_indirect_ && !is_direct_; }

 private:
  void add(Addr target) noexcept;

  std::array<Addr, 4> targets_{};
  std::size_t count_ = 0;
  bool is_indirect_ = false;
  bool is_direct_ = false;
};

}  // namespace jitunwind
