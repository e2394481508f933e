#include <algorithm>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/sources/guesses/call_target_p.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"

namespace jitunwind {

std::optional<Addr> target_by(const JumpOperand& operand, const RegisterFile& registers, Addr sp,
                              const AddressSpace& space, MemoryWindow& window) noexcept {
  const Arch& arch = space.arch;
  const auto value_of = [&](RegNum reg) -> std::optional<Addr> {
    if (reg == k_no_reg) return 0;
    return reg == arch.sp ? sp : registers.get(arch.column(reg));
  };
  if (operand.kind == JumpOperand::Kind::none) return std::nullopt;
  const auto base = value_of(operand.base), index = value_of(operand.index);
  if (!base || !index) return std::nullopt;
  const Addr value = (*base + *index * operand.scale + static_cast<Addr>(operand.offset)) & arch.word_mask();
  if (operand.kind == JumpOperand::Kind::value) return value & arch.address_mask;
  const auto word = read_word(space.memory, window, value, arch, "target of a call");
  return word ? std::optional(*word & arch.address_mask) : std::nullopt;
}

CallTargets::CallTargets(const Lookup& lookup, const RegisterFile& registers, Addr return_address,
                         Addr sp_at_call) noexcept {
  const AddressSpace& space = lookup.space;
  if (!space.arch.read_instruction || return_address == 0) return;
  const CodeBefore code(return_address, space.memory, lookup.window);
  for (const CodePattern& pattern : space.arch.calls) {
    if (!code.ends_with(pattern)) continue;
    // A prefix before the pattern makes other registers of the same bytes.
    for (std::size_t length = pattern.bytes.size(); length <= pattern.bytes.size() + 1; ++length) {
      if (length > code.size()) break;
      const MachineInstruction call = space.arch.read_instruction(code.last(length), return_address - length);
      if (call.effect != MachineInstruction::Effect::call || call.length != length) continue;
      const auto target = call.target != 0 ? std::optional(call.target)
                                           : target_by(call.operand, registers, sp_at_call, space, lookup.window);
      if (target) add(*target);
      if (call.target == 0)
        is_indirect_ = true;
      else if (is_code(space, lookup.window, call.target))
        is_direct_ = true;
    }
  }
}

void CallTargets::add(Addr target) noexcept {
  if (count_ != targets_.size() && std::ranges::find(all(), target) == all().end()) targets_[count_++] = target;
}

}  // namespace jitunwind
