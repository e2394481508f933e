#include "jitunwind/unwind_core/walk/stack_position.h"

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"

namespace jitunwind {

Status StackPosition::write(int column, std::uint64_t value, Addr context) noexcept {
  const SaveLocation place = registers_.location(column);
  const RegisterInfo* const holder =
      place.kind == SaveLocation::Kind::reg && context != k_no_context ? space_->arch.by_dwarf(place.reg) : nullptr;
  std::optional<Addr> at;
  if (place.kind == SaveLocation::Kind::memory) at = place.at;
  if (holder && holder->ucontext >= 0) at = context + static_cast<std::uint64_t>(holder->ucontext);
  if (at) {
    const Status written = write_word(space_->memory, window_, *at, value, space_->arch, "place of a register");
    if (!written) return written;
  }
  registers_.change(column, value);
  return Done{};
}

/// DWARF for the Arm 64-bit Architecture, 4.4: state 1 is signed over the CFA, which is the SP at entry. States with
/// the address of the signing instruction (FEAT_PAuth_LR) are stripped alone: no compiler at hand makes them.
Status StackPosition::authenticate(const FrameRow& row, const Caller& caller) const noexcept {
  const Arch& arch = space_->arch;
  if (caller.outermost || !has_signed(row)) return Done{};
  const auto address = caller.registers.get(arch.column(arch.pc));
  if (!address || space_->keys->is_signed_so(*address, caller.cfa, row.signing_key)) return Done{};
  return Error{ErrorCode::bad_signature, pc(), "signature over return address and CFA"};
}

void expect_walk_by(StackPosition& position) noexcept {
  (void)known_stack(position.sp());
  position.set_proven(stack_in_use(position.sp()));
}

}  // namespace jitunwind
