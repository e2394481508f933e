#include "jitunwind/sdk/exceptions/runtime/unwind_frame_p.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/walk/context.h"
#include "jitunwind/unwind_core/walk/cursor_step_internal.h"
#include "jitunwind/unwind_core/walk/resume.h"

namespace jitunwind::eh {

namespace {

using Facts = CodeEntry<ProcedureFacts>;
using Handler = CallerRule::Handler;

/// Facts stand where the number of their rule's entry says, so that nothing is searched, and neighbours on a stack are
/// neighbours here. Rules of a larger table share entries: facts that others have replaced are asked for again.
constinit std::array<Facts, KeptRules::Table::own_count()> known_facts;
Facts& facts_of(const RulePlace& rule) noexcept { return known_facts[rule.number % known_facts.size()]; }

[[gnu::constructor]] void touch_facts() { known_facts[0].touch(); }

bool others_may_have_personality(Addr at) noexcept {
  const ProcedureHold hold(at);
  return hold.info() && may_have_other_personality(*hold.info());
}

/// The places of a register of the host: in a ucontext_t, in a RegisterFile, in DWARF. It has 8 bytes.
struct LiveRegister {
  std::int16_t ucontext = 0;
  std::int8_t column = 0;
  RegNum dwarf = 0;
};

/// SP and pc; registers that live across calls; registers that exceptions are passed in. all() has neither SP nor pc.
class LiveRegisters {
 public:
  explicit LiveRegisters(const Arch& arch) noexcept {
    const auto passes = [&](RegNum r) { return std::ranges::count(arch.exception_registers, r) != 0; };
    for (const RegisterInfo& r : arch.registers)
      if (!passes(r.dwarf) && r.preserved && r.dwarf != arch.sp && r.dwarf != arch.pc) add(r);
    across_calls_ = count_;
    for (const RegisterInfo& r : arch.registers)
      if (passes(r.dwarf)) add(r);
    sp = made_of(*arch.by_dwarf(arch.sp));
    pc = made_of(*arch.by_dwarf(arch.pc));
  }
  std::span<const LiveRegister> all() const noexcept { return std::span(list_).first(count_); }
  std::span<const LiveRegister> across_calls() const noexcept { return std::span(list_).first(across_calls_); }

  LiveRegister sp;
  LiveRegister pc;

 private:
  static LiveRegister made_of(const RegisterInfo& r) noexcept { return {r.ucontext, r.column, r.dwarf}; }
  void add(const RegisterInfo& r) noexcept {
    if (r.ucontext >= 0 && count_ < list_.size()) list_[count_++] = made_of(r);
  }

  std::array<LiveRegister, 40> list_;
  std::size_t count_ = 0;
  std::size_t across_calls_ = 0;
};

/// Made while this library is loaded, or by an exception of a library that is initialised before it. A static variable
/// of a function would do the same by the C++ run-time library.
constinit std::optional<LiveRegisters> made_registers;
enum class Making { not_begun, begun, done };
constinit std::atomic<Making> making{Making::not_begun};

[[gnu::constructor, gnu::cold]] void make_registers() {
  Making found = Making::not_begun;
  if (making.compare_exchange_strong(found, Making::begun)) {
    made_registers.emplace(*host_arch());
    making.store(Making::done, std::memory_order_release);
  }
  while (making.load(std::memory_order_acquire) != Making::done) ::sched_yield();
}
const LiveRegisters& live_registers() noexcept {
  if (making.load(std::memory_order_acquire) != Making::done) [[unlikely]]
    make_registers();
  return *made_registers;
}

std::uint64_t word_at(const void* start, std::int16_t offset) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, static_cast<const std::byte*>(start) + offset, sizeof word);
  return word;
}

}  // namespace

UnwindFrame::UnwindFrame(const void* entry, FrameRow& row, const void* walk) noexcept
    : StackPosition(local_space()), row_(&row), walk_(walk) {
  const LiveRegisters& live = live_registers();
  sp_column_ = live.sp.column;
  const auto take = [&](const LiveRegister& r) {
    const std::uint64_t value = word_at(entry, r.ucontext);
    registers_.set_from_register(r.column, value, r.dwarf);
    return value;
  };
  for (const LiveRegister& r : live.across_calls()) take(r);
  add_vector_words(space_->arch, registers_);
  address_ = CodeAddress::returned_to(take(live.pc) & space_->arch.address_mask);
  // No rule of a callee links to the entry where a walk begins, as `_Unwind_Resume()` does at the end of each cleanup.
  if (space_->row_cache) rule_place_.next = space_->row_cache->rules.table.likely(address_.lookup());
  const Addr sp = take(live.sp);
  window_.proven = expect_walk_from(sp);
  if (!window_.proven.empty()) return;
  // The page of the frame that called this very function needs no probe.
  const Addr page = page_of(sp - 1);
  window_.proven = {page, page + k_page_size};
}

UnwindFrame::Known UnwindFrame::fail(const Error& error) noexcept {
  error_ = error;
  return Known::broken;
}

void UnwindFrame::set_procedure(const ProcedureInfo& procedure) noexcept {
  facts_.personality = procedure.handler;
  facts_.lsda = procedure.lsda;
  facts_.start = procedure.range.begin;
}

/// False: the procedure has to be looked for.
[[gnu::always_inline]] inline bool UnwindFrame::find_facts(const KeepTicket& ticket) noexcept {
  if (kept_.rule.handler() != Handler::known) [[unlikely]] {
    facts_ = {};
    return kept_.rule.handler() == Handler::none;
  }
  const std::uint64_t version = RowCache::version_of(ticket.registrations, kept_.rule.kept_by(), module_);
  const Facts& known = facts_of(rule_place_);
  facts_ = known.value();
  return known.holds(facts_, ticket.at, Facts::cipher(version));
}

UnwindFrame::Known UnwindFrame::look(Plain plain) noexcept {
  KeepTicket ticket;
  const RowCache* const rows = space_->row_cache;
  const bool is_linked = rows && go_by_links(*rows, plain, ticket);
  if (is_outermost()) [[unlikely]] {
    is_compact_ = false;
    set_procedure({});
    return Known::end;
  }
  if (!is_linked && (!rows || !rows->find_otherwise(address_.lookup(), module_, rule_place_, kept_, ticket)))
      [[unlikely]]
    return with_room(walk_, [&] { return look_anew(rows, ticket); });
  is_compact_ = true;
  if (find_facts(ticket)) [[likely]]
    return Known::found;
  return with_room(walk_, [&] { return look_at_procedure(ticket); });
}

/// Goes over plain frames, if they are passed, as long as links lead on. Nothing but pc, SP and the places of saved
/// registers is needed on the way. Whether a link leads to this frame's row, which is `kept_` then.
[[gnu::always_inline]] inline bool UnwindFrame::go_by_links(const RowCache& rows, Plain plain,
                                                            KeepTicket& ticket) noexcept {
  const CompactLayout& layout = rows.layout;
  CompactCaller here{.sp = plain == Plain::passed ? sp() : 0};
  Addr at = address_.lookup();
  RulePlace place = rule_place_;
  std::uint32_t passed = 0;
  bool is_linked;
  for (;; ++passed) {
    is_linked = rows.find_linked(at, place, kept_, ticket.registrations);
    if (!is_linked || plain == Plain::looked_at || kept_.rule.handler() != Handler::none) break;
    const bool by_fp = kept_.rule.base_is_frame_pointer();
    if (by_fp && !registers_.known(layout.fp_column())) break;
    const Addr base = by_fp ? registers_.value(layout.fp_column()) : here.sp;
    CompactCaller caller;
    if (!jitunwind::find_caller(kept_.row, base, layout, space_->memory, window_, caller)) break;
    if (caller.pc == 0 || caller.sp <= here.sp) break;
    restore_saved(kept_.row, layout, caller.cfa, registers_);
    here = caller;
    at = CodeAddress::returned_to(caller.pc).lookup();
  }
  ticket.at = at;
  ticket.before = place.number;
  rule_place_ = place;
  if (passed != 0) {
    depth_ += passed - 1;
    landing_pad_ = 0;
    go_to(here);
  }
  return is_linked;
}

Handler UnwindFrame::handler(KeptBy by) const noexcept {
  if (by == KeptBy::nothing) return Handler::unknown;
  return facts_.personality == 0 && facts_.lsda == 0 ? Handler::none : Handler::known;
}

void UnwindFrame::keep_facts(const KeepTicket& ticket, KeptBy by, const ModuleVersion& module) noexcept {
  if (handler(by) != Handler::known) return;
  const std::uint64_t version = RowCache::version_of(ticket.registrations, by, module);
  facts_of(rule_place_).set(facts_, Facts::key_of(ticket.at, facts_, Facts::cipher(version)));
}

Status UnwindFrame::find_procedure(Lookup& asked) noexcept {
  ProcedureInfo procedure;
  const Found found = space_->find_procedure(asked, procedure);
  if (!found) return found.error();
  set_procedure(procedure);
  return Done{};
}

/// Frames of others whose personality counts, not that of a row of a registered table.
bool UnwindFrame::is_of_others(RowOrigin origin) noexcept {
  return origin == RowOrigin::dyn_table && others_may_have_personality(address_.lookup()) &&
         look_at_frames_of_others() == Known::found;
}

/// Finds the procedure of code whose row was kept without it.
UnwindFrame::Known UnwindFrame::look_at_procedure(const KeepTicket& ticket) noexcept {
  if (is_of_others(kept_.rule.origin())) {
    is_compact_ = false;
    return Known::found;
  }
  Lookup asked = lookup();
  if (const Status found = find_procedure(asked); !found) return fail(found.error());
  const ModuleVersion module = kept_.rule.is_of_module() ? RowCache::module_of(asked) : ModuleVersion{};
  const KeptBy by = kept_.rule.kept_by();
  if (by == KeptBy::nothing) return Known::found;
  rule_place_ = space_->row_cache->keep(ticket, kept_.rule.with(handler(by)), nullptr, module);
  keep_facts(ticket, by, module);
  return Known::found;
}

ProcedureInfo UnwindFrame::find_procedure_anew() noexcept {
  return with_room(walk_, [&] {
    Lookup asked = lookup();
    ProcedureInfo procedure;
    const Found found = space_->find_procedure(asked, procedure);
    return found && *found ? procedure : ProcedureInfo{};
  });
}

Addr UnwindFrame::start() noexcept {
  if (facts_.start == 0 && !is_outermost()) facts_.start = find_procedure_anew().range.begin;
  return facts_.start;
}

Addr UnwindFrame::gp() noexcept { return is_outermost() ? 0 : find_procedure_anew().gp; }

UnwindFrame::Known UnwindFrame::look_anew(const RowCache* rows, KeepTicket& ticket) noexcept {
  NewRow row(*row_, rows ? &rows->layout : nullptr);
  is_compact_ = rows && rows->find_alike(ticket, rule_place_, row, kept_);
  if (is_compact_) return find_facts(ticket) ? Known::found : look_at_procedure(ticket);
  set_procedure({});
  Lookup asked = lookup();
  ProcedureInfo procedure;
  row.procedure = &procedure;
  const RowAnswer answer = rows ? rows->find_new(asked, row) : space_->find_any_row(asked, row);
  if (answer == RowAnswer::broken) return fail(row.error);
  if (answer == RowAnswer::none || is_guess(row.full.origin)) return look_at_frames_of_others();
  if (is_of_others(row.full.origin)) return Known::found;
  if (procedure.origin != RowOrigin::none)
    set_procedure(procedure);
  else if (const Status found = find_procedure(asked); !found)
    return fail(found.error());
  if (rows) keep(*rows, ticket, asked, row);
  if (!is_compact_) row.complete();
  return Known::found;
}

void UnwindFrame::keep(const RowCache& rows, const KeepTicket& ticket, Lookup& asked, const NewRow& row) noexcept {
  const KeptBy by = row.is_compact ? row.kept_by : KeptBy::nothing;
  kept_ = {row.compact, rows.keep(ticket, asked, row, rule_place_, handler(by))};
  keep_facts(ticket, by, by == KeptBy::module ? RowCache::module_of(asked) : ModuleVersion{});
  is_compact_ = kept_.rule.kept_by() != KeptBy::nothing;
}

/// Programs announce frames to libgcc by __register_frame(), and it alone knows them. It is called last, since it takes
/// its lock. Its answers are never cached, since their end is not announced.
UnwindFrame::Known UnwindFrame::look_at_frames_of_others() noexcept {
  ForeignFde found;
  if (!find_fde_of_others(address_.lookup(), found)) return Known::end;
  CfiContext context{space_->arch};
  context.text_base = found.text_base;
  context.data_base = found.data_base;
  MemoryView bytes(space_->memory, window_, {});
  Fde fde;
  const Found covers = read_fde_for(address_.lookup(), bytes, context, found.fde, fde);
  if (!covers) return fail(covers.error());
  if (!*covers) return Known::end;
  if (const Status row = row_at(fde, context, address_.lookup(), *row_); !row) return fail(row.error());
  row_->origin = RowOrigin::eh_frame;
  ProcedureInfo procedure;
  const Status described = read_procedure(fde, space_->arch, space_->memory, window_, procedure);
  if (!described) return fail(described.error());
  set_procedure(procedure);
  return Known::found;
}

template <class C, class Row>
UnwindFrame::Known UnwindFrame::go_on_to(const C& caller, const Row& row) noexcept {
  if (is_itself(caller)) return fail({ErrorCode::cyclic_frames, caller.pc, "the caller is the frame itself"});
  landing_pad_ = 0;
  go_to(caller, row);
  return Known::found;
}

UnwindFrame::Known UnwindFrame::step() noexcept {
  if (depth_ >= k_max_frames) return fail({ErrorCode::frame_limit, pc(), "frames of one stack"});
  if (is_compact_) {
    if (CompactCaller caller; find_caller(kept_.row, caller)) return go_on_to(caller, kept_.row);
  }
  return with_room(walk_, [&] { return step_by_row(); });
}

UnwindFrame::Known UnwindFrame::step_by_row() noexcept {
  if (is_compact_) *row_ = expand(kept_.row, space_->row_cache->layout);
  Caller caller;
  if (const Status applied = find_caller(*row_, caller); !applied) return fail(applied.error());
  if (caller.outermost) caller.pc = 0;
  return go_on_to(caller, *row_);
}

std::uint64_t UnwindFrame::get(int reg) const noexcept {
  // The ABI has no way to say that there is no value; at the end of the stack there is no frame either.
  if (reg < 0 || is_outermost()) return 0;
  return registers_.get(space_->arch.column(static_cast<RegNum>(reg))).value_or(0);
}

bool UnwindFrame::set(int reg, std::uint64_t value) noexcept {
  const int column = reg < 0 ? -1 : space_->arch.column(static_cast<RegNum>(reg));
  if (column < 0) return false;
  if (!registers_.known(column)) [[likely]] {  // an exception is passed in it
    registers_.set(column, value);
    return true;
  }
  return bool(write(column, value, k_no_context));
}

void UnwindFrame::set_pc(Addr pc) noexcept { landing_pad_ = pc; }

JITUNWIND_LEFT_BY_A_JUMP Error UnwindFrame::install() noexcept {
  const LiveRegisters& live = live_registers();
  const std::uint64_t pushed = is_compact_ ? 0 : row_->args_size;
  // Handlers throw on small stacks: nobody looks at the row from here on. Other registers become anything: resume.h.
  using Registers = std::array<std::byte, k_registers_size>;
  static_assert(sizeof(Registers) <= sizeof(FrameRow) && std::is_trivially_destructible_v<FrameRow>);
  std::byte* const context = (::new (static_cast<void*>(row_)) Registers)->data();
  const auto put = [&](const LiveRegister& r, std::uint64_t value) {
    std::memcpy(context + r.ucontext, &value, sizeof value);
  };
  for (const LiveRegister& r : live.all()) put(r, registers_.get(r.column).value_or(0));
  put(live.pc, landing_pad_ != 0 ? landing_pad_ : pc());
  put(live.sp, sp() + pushed);
  return go_on_with(*space_, context, sp());
}

}  // namespace jitunwind::eh
