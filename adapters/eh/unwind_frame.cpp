#include "adapters/eh/unwind_frame_p.h"

#include "unwind_core/apply_row.h"
#include "unwind_core/context.h"
#include "unwind_core/cursor.h"
#include "unwind_core/resume.h"

namespace jitunwind::eh {

UnwindFrame::UnwindFrame(const void* entry) noexcept : space_(&local_space()) {
  const Arch& arch = space_->arch;
  registers_ = registers_from_ucontext(entry, arch);
  for (const RegisterInfo& r : arch.registers)
    if (r.column >= 0 && !r.preserved && r.dwarf != arch.sp && r.dwarf != arch.pc) registers_.forget(r.column);
  address_ = CodeAddress::returned_to(registers_.get(arch.column(arch.pc)).value_or(0) & arch.address_mask);
}

UnwindFrame::Known UnwindFrame::fail(const Error& error) noexcept {
  error_ = error;
  return Known::broken;
}

UnwindFrame::Known UnwindFrame::look() noexcept {
  procedure_ = {};
  if (is_outermost()) return Known::end;
  Lookup lookup(*space_, address_, window_, &registers_);
  const Found row = space_->find_row(lookup, row_);
  if (!row) return fail(row.error());
  if (!*row || is_guess(row_.origin)) return Known::end;
  const Found procedure = space_->find_procedure(lookup, procedure_);
  if (!procedure) return fail(procedure.error());
  return Known::found;
}

UnwindFrame::Known UnwindFrame::step() noexcept {
  Caller caller;
  const Status applied = apply_row(row_, registers_, space_->arch, space_->memory, window_, caller);
  if (!applied) return fail(applied.error());
  const int sp_column = space_->arch.column(space_->arch.sp);
  const bool ends = caller.outermost || caller.pc == 0;
  if (!ends && caller.pc == pc() && caller.registers.get(sp_column) == registers_.get(sp_column))
    return fail({ErrorCode::cyclic_frames, caller.pc, "the caller is the frame itself"});
  registers_ = caller.registers;
  address_ = row_.signal_frame ? CodeAddress::interrupted(caller.pc) : CodeAddress::returned_to(caller.pc);
  if (ends) address_ = {};
  landing_pad_ = 0;
  if (++depth_ == Cursor::k_max_frames) return fail({ErrorCode::frame_limit, pc(), "frames of one stack"});
  return Known::found;
}

std::uint64_t UnwindFrame::get(int reg) const noexcept {
  // The ABI has no way to say that there is no value; at the end of the stack there is no frame either.
  if (reg < 0 || is_outermost()) return 0;
  return registers_.get(space_->arch.column(static_cast<RegNum>(reg))).value_or(0);
}

bool UnwindFrame::set(int reg, std::uint64_t value) noexcept {
  const int column = reg < 0 ? -1 : space_->arch.column(static_cast<RegNum>(reg));
  if (column < 0) return false;
  const SaveLocation place = registers_.location(column);
  if (place.kind == SaveLocation::Kind::memory &&
      !write_word(space_->memory, window_, place.at, value, space_->arch, "saved register"))
    return false;
  registers_.change(column, value);
  return true;
}

void UnwindFrame::set_pc(Addr pc) noexcept { landing_pad_ = pc; }

Error UnwindFrame::install() noexcept {
  const Arch& arch = space_->arch;
  const int sp_column = arch.column(arch.sp);
  RegisterFile registers = registers_;
  registers.change(sp_column, sp() + row_.args_size);
  registers.change(arch.column(arch.pc), landing_pad_ != 0 ? landing_pad_ : pc());
  return go_on_with(*space_, registers, sp());
}

}  // namespace jitunwind::eh
