// Questions that a walk seldom asks a cursor: about rows and procedures of a frame, registers that are changed, and the
// reason why there is no row.
#include <algorithm>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "jitunwind/unwind_core/walk/cursor_step_internal.h"

namespace jitunwind {

const char* stop_reason_name(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::none:
      return "none";
    case StopReason::outermost:
      return "outermost";
    case StopReason::no_info:
      return "no_info";
    case StopReason::broken:
      return "broken";
    case StopReason::cyclic:
      return "cyclic";
    case StopReason::limit:
      return "limit";
  }
  return "?";
}

Status Cursor::find_row(FrameRow& out) const noexcept {
  MemoryWindow window = window_;
  return with_room(this, [&] { return look_for_row(window, out); });
}

Status Cursor::look_for_row(MemoryWindow& window, FrameRow& out) const noexcept {
  const Found found = ask_for_row(window, out);
  if (!found) return found.error();
  if (!*found) return unknown_code();
  return Done{};
}

/// There is no row and no guess. A core file may leave out the code of a file that is missing.
Error Cursor::unknown_code() const noexcept {
  return with_room(this, [&] {
    MemoryWindow window = window_;
    Lookup asked(*space_, address_, window);
    const Module* const module = asked.module_with_file_sections();
    const char* why = module ? module->unread : nullptr;
    std::byte code;
    if (why == nullptr && space_->memory.read(address_.lookup(), {&code, 1}, window) != 1)
      why = "code that cannot be read, nor unwind information of it";
    if (why == nullptr) why = "code without unwind information, and its caller cannot be confirmed";
    return Error{ErrorCode::no_info, pc(), why};
  });
}

Result<ProcedureInfo> Cursor::procedure() noexcept {
  ProcedureInfo info;
  const Found found = with_room(this, [&] {
    Lookup question = lookup();
    return space_->find_procedure(question, info);
  });
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, pc(), "no procedure information for this pc"};
  return info;
}

Result<bool> Cursor::step_by(const FrameRow& row) noexcept {
  if (const auto ended = at_end()) return *ended;
  return with_room(this, [&] { return leave_by(row); });
}

Status Cursor::set(RegNum reg, std::uint64_t value) noexcept {
  const Arch& arch = space_->arch;
  const RegisterInfo* info = arch.by_dwarf(reg);
  if (!info || info->column < 0) return Error{ErrorCode::bad_register, reg, "register number"};
  const bool always_writable = std::ranges::find(arch.exception_registers, reg) != arch.exception_registers.end();
  if (!registers_.known(info->column) && !always_writable) return Error{ErrorCode::undefined_register, reg, "register"};
  const Addr sp_before = sp();
  const Result<std::uint64_t> kept = reg == arch.pc ? sign_as_present(value) : value;
  if (!kept) return kept.error();
  if (const Status written = write(info->column, *kept, context_); !written) return written;
  if (reg == arch.sp && !sp_written_) {
    frame_sp_ = sp_before;
    sp_written_ = true;
  }
  if (reg == arch.pc) go_on_at(value);
  return Done{};
}

/// The signature is over the SP at entry, which is the CFA, and this frame's SP.
Result<std::uint64_t> Cursor::sign_as_present(Addr pc) const noexcept {
  if (pc_signature_ == 0) return pc;
  const Addr present = registers_.value(space_->arch.column(space_->arch.pc));
  const SigningInstructions* const keys = space_->keys;
  if (!keys) {  // of another process, or the CPU signs nothing
    if ((present & ~space_->arch.address_mask) == 0) return pc;
    return Error{ErrorCode::read_only_register, pc, "signed return address, whose key nobody has"};
  }
  auto key = static_cast<SigningKey>(pc_signature_ - 1);
  if (key == SigningKey::any)
    key = keys->is_signed_so(present, frame_sp(), SigningKey::b) ? SigningKey::b : SigningKey::a;
  return keys->sign(pc, frame_sp(), key);
}

void Cursor::go_on_at(Addr pc) noexcept {
  if (pc == address_.value()) return;
  if (!pc_written_) pushed_arguments_ = 0;
  if (!pc_written_ && address_.is_return_address())
    with_room(this, [&] {
      FrameRow row;
      if (look_for_row(window_, row)) pushed_arguments_ = row.args_size;
    });
  address_ = CodeAddress::interrupted(pc);
  pc_written_ = true;
  stop_ = StopReason::none;
}

SaveLocation Cursor::location(RegNum reg) const noexcept { return registers_.location(space_->arch.column(reg)); }

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

}  // namespace jitunwind
