// The loop of the engine: address -> sources -> row -> apply -> caller.
#include "jitunwind/unwind_core/walk/cursor.h"

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "jitunwind/unwind_core/walk/cursor_step_internal.h"

namespace jitunwind {

[[gnu::hot]] Result<bool> Cursor::step() noexcept {
  KeepTicket ticket;
  if (step_by_kept(ticket)) return true;
  return step_by_sources(ticket);
}

[[gnu::hot]] Result<bool> Cursor::step_by_sources(const KeepTicket& ticket) noexcept {
  if (const auto ended = at_end()) return *ended;
  return with_room(this, [&] { return leave_by_sources(ticket); });
}

/// Makes a step where no rule is kept, as in the picture of docs/walks.md.
[[gnu::hot]] Result<bool> Cursor::leave_by_sources(KeepTicket ticket) noexcept {
  const RowCache* const rows = space_->row_cache;
  if (rows && ticket.partial.kind() == CallerRule::Kind::outermost) {
    count_warm_event(Counter::kept_row_used);
    return stop(StopReason::outermost, {});
  }
  FrameRow room;
  NewRow row(room, rows ? &rows->layout : nullptr);
  KeptRow alike;
  const CompactRow* compact = rows && rows->find_alike(ticket, rule_place_, row, alike) ? &alike.row : nullptr;
  Lookup asked = lookup(guesses_);
  // The row of code alike is tried first. If it leads nowhere, the sources are asked. The step by a compact row is
  // inline, and stands at one place for both, because a second one takes 0.9 KB.
  for (;;) {
    if (!compact) {
      RowAnswer answer = rows ? rows->find_new(asked, row) : space_->find_any_row(asked, row);
      if (answer == RowAnswer::none) answer = row.answer(space_->find_guess(asked, row.full));
      if (answer == RowAnswer::none) answer = row.fail(unknown_code());
      if (answer == RowAnswer::broken) return stop_without_row(row.error);

      if (!rows) return leave_by(row.full);
      if (rows->keep(ticket, asked, row, rule_place_).kept_by() != KeptBy::nothing) compact = &row.compact;
    }
    if (compact && leave_by(*compact)) return true;
    if (compact != &alike.row) break;
    compact = nullptr;
  }
  const Result<bool> left = leave_by(row.complete());
  if (left && !*left) rows->keep_end(ticket, asked, row);
  return left;
}

Result<bool> Cursor::leave_by(const FrameRow& row) noexcept {
  Caller caller;
  if (const Status applied = find_caller(row, caller); !applied) return stop(StopReason::broken, applied.error());
  if (caller.outermost) return stop(StopReason::outermost, {});
  // A signal may have interrupted what is no code: a call through a bad pointer.
  if (!row.signal_frame) {
    if (caller.pc == 0) return stop(StopReason::outermost, {});
    if (!leads_to_code(caller.pc))
      return stop(error_.code == ErrorCode::no_info ? StopReason::no_info : StopReason::broken, error_);
  }

  SignalContext signal = signal_;
  if (row.signal_frame && space_->arch.sigframe_ucontext >= 0)
    signal = {sp() + static_cast<std::uint64_t>(space_->arch.sigframe_ucontext), pc(), depth_ + 1};
  if (!go_on_to(caller, row))
    return stop(StopReason::cyclic, {ErrorCode::cyclic_frames, caller.pc, "caller is a frame seen before"});
  signal_ = signal;
  return true;
}

bool Cursor::leave_by_copy(const CompactRow& row) noexcept {
  CopiedCaller caller;
  return find_caller(row, caller) && leads_to_code(caller.pc) && go_on_to(caller, row);
}

std::optional<Result<bool>> Cursor::at_end() noexcept {
  if (stop_ == StopReason::outermost) return false;
  if (stop_ != StopReason::none) return error_;
  if (depth_ == k_max_frames) return stop(StopReason::limit, {ErrorCode::frame_limit, pc(), "frame limit of a walk"});
  return std::nullopt;
}

Result<bool> Cursor::stop_without_row(const Error& error) noexcept {
  return stop(error.code == ErrorCode::no_info ? StopReason::no_info : StopReason::broken, error);
}

Cursor::Cursor(const AddressSpace& space, const RegisterFile& registers, Top top, void* argument, Addr context) noexcept
    : StackPosition(space, registers), context_(context) {
  begin(top, argument);
}

Result<std::uint64_t> Cursor::get(RegNum reg) const noexcept {
  const RegisterInfo* info = space_->arch.by_dwarf(reg);
  if (!info || info->column < 0) return Error{ErrorCode::bad_register, reg, "register number"};
  if (!registers_.known(info->column)) return Error{ErrorCode::undefined_register, reg, "register"};
  const std::uint64_t value = registers_.value(info->column);
  return reg == space_->arch.pc ? value & space_->arch.address_mask : value;  // where it was saved it may be signed
}

namespace {

/// "ended at 0x401136, 7 frames above the first: broken (unreadable_memory): return address, at 0x7ffd000".
[[gnu::cold, gnu::noinline]] void log_end(const Cursor& cursor, StopReason reason, const Error& error) noexcept {
  LogLine line(LogTopic::walk);
  line.text("ended at ").hex(cursor.pc()).text(", ").number(cursor.depth()).text(" frames above the first: ");
  line.text(stop_reason_name(reason));
  if (reason == StopReason::outermost) return;
  line.text(" (").text(error_name(error.code)).text("): ").text(error.what).text(", at ").hex(error.at);
}

}  // namespace

Result<bool> Cursor::stop(StopReason reason, const Error& error) noexcept {
  if (logs(LogTopic::walk)) log_end(*this, reason, error);
  stop_ = reason;
  error_ = error;
  if (reason == StopReason::outermost) return false;
  return error;
}

Found Cursor::ask_for_row(MemoryWindow& window, FrameRow& out) const noexcept {
  Lookup asked(*space_, address_, window, &registers_, guesses_);
  const Found found = space_->find_row(asked, out);
  return found && !*found ? space_->find_guess(asked, out) : found;
}

/// Code that has a row is code. Modules are asked first: more frames are in them.
bool Cursor::leads_to_other_code(Addr pc) noexcept {
  const Addr at = CodeAddress::returned_to(pc).lookup();
  if (const Module* const module = space_->modules.find_lasting(at); module && module->text.contains(at)) {
    code_ = module->text;
    return true;
  }
  const RowCache* const rows = space_->row_cache;
  KeepTicket ticket;
  RulePlace place = rule_place_;
  KeptRow kept;
  if (rows && rows->find(at, module_, place, kept, ticket)) {
    rule_place_.next = place.number;
    if (module_.is_code && module_.range.contains(at)) code_ = module_.range;
    return true;
  }
  if (rows && rows->alike && space_->was_told_of(at)) return true;  // the registry of this process needs no room
  return with_room(this, [&] {
    const Status code = space_->expect_code(CodeAddress::returned_to(pc), window_, code_);
    if (!code) error_ = code.error();
    return bool(code);
  });
}

Result<ProcedureName> Cursor::name(std::span<char> into) const noexcept {
  ProcedureName name;
  const Found found = with_room(this, [&] {
    const AddressSpace& space = space_->for_addresses();
    MemoryWindow window = window_;
    Lookup question(space, space.named_at(address_, window), window, &registers_);
    return space.find_name(question, into, name);
  });
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, pc(), "no name for this pc"};
  return name;
}

std::optional<Cursor::RowKind> Cursor::known_row() const noexcept {
  const RowCache* const rows = space_->row_cache;
  ModuleVersion module = module_;
  KeepTicket ticket;
  RulePlace place;
  KeptRow kept;
  if (!rows) return std::nullopt;
  if (rows->find(address_.lookup(), module, place, kept, ticket)) return RowKind{kept.rule.origin()};
  const CallerRule rule = ticket.partial;
  return rule.kind() == CallerRule::Kind::outermost ? std::optional(RowKind{rule.origin()}) : std::nullopt;
}

/// Origin none: there is no row.
inline Result<Cursor::RowKind> Cursor::row_kind() const noexcept {
  if (const auto known = known_row()) return *known;
  return with_room(this, [&]() -> Result<RowKind> {
    FrameRow row;
    MemoryWindow window = window_;
    const Found found = ask_for_row(window, row);
    if (!found) return found.error();
    return *found ? RowKind{row.origin, row.signal_frame} : RowKind{};
  });
}

RowOrigin Cursor::origin() const noexcept {
  const auto kind = row_kind();
  return kind ? kind->origin : RowOrigin::none;
}

Result<bool> Cursor::is_signal_frame() const noexcept {
  const auto kind = row_kind();
  if (!kind) return kind.error();
  if (kind->origin == RowOrigin::none) return unknown_code();
  return kind->is_signal_frame;
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
