#include "jitunwind/unwind_core/walk/stack_position.h"

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

void expect_walk_by(StackPosition& position) noexcept {
  (void)known_stack(position.sp());
  position.set_proven(stack_in_use(position.sp()));
}

}  // namespace jitunwind
