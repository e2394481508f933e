#include "jitunwind/unwind_core/walk/caller_chain_p.h"

#include <algorithm>
#include <optional>

#include "jitunwind/unwind_core/kept/row_notes_p.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {

/// Sets the rule at `at`, and its entry where that is known. A link tells the entry before the return address was read:
/// another walk this way looks nothing up but its first frame. Stacks of the same functions in ever other orders would
/// replace each link at each walk, and threads would wait for each other's cache lines. So a walk replaces one link,
/// and goes by addresses where a second one does not help.
template <CallerChain::Way k_way>
[[gnu::always_inline]] inline CallerChain::Stop CallerChain::find_rule(const Table::Entries& entries,
                                                                       RecentRules& recent, Addr at, RulePlace callee,
                                                                       Table::Number& entry,
                                                                       CallerRule& rule) noexcept {
  const auto cipher_of = [&](CallerRule known) { return cipher(known, at); };
  if constexpr (k_way == Way::link) {
    entry = entries.in_bounds(callee.next);
    rule = entries.value(entry);
    if (entries.holds(entry, rule, at, cipher_of(rule))) [[likely]]
      return Stop::full;
    if (has_linked_) return Stop::not_linked;
  } else {
    if (recent.find(at, cipher_of, rule)) [[likely]]
      return Stop::full;
  }
  const Table::Found found = find(at);
  if (!found.holds) return Stop::unknown;
  rule = found.value;
  if constexpr (k_way == Way::link) {
    entry = found.number;
    has_linked_ = callee.number != RulePlace::k_none;
    if (has_linked_) rows_.link(callee, entry);
  } else {
    recent.put(at, entries, found);
  }
  return Stop::full;
}

/// The chain from one frame to the next bounds the time of a walk, so all that a step reads and writes is in registers.
/// `k_calls_push`: the return address is what a call has pushed, at CFA - word, and SP is the CFA then.
template <CallerChain::Way k_way, bool k_calls_push>
[[gnu::hot]] CallerChain::Stop CallerChain::run_on() noexcept {
  if (!is_on_stack()) return Stop::unknown;
  Addr pc = at_ + 1;  // as if it were a return address
  Addr sp = sp_;
  Addr fp = fp_;
  void** out = next_;
  Addr highest = highest_lowest();
  const Table::Entries entries = rules_.table.entries();
  RecentRules& recent = rules_.recent;
  RulePlace callee = callee_;
  Stop stop = Stop::full;
  while (out != end_) {
    Table::Number entry = RulePlace::k_none;
    CallerRule rule;
    if (stop = find_rule<k_way>(entries, recent, pc - 1, callee, entry, rule); stop != Stop::full) [[unlikely]]
      break;
    const Addr cfa = (rule.base_is_frame_pointer() ? fp : sp) + rule.cfa_offset();
    const Addr pc_below = k_calls_push ? CompactRow::k_word : rule.return_address_below_cfa();
    const Addr fp_below = rule.frame_pointer_below_cfa();
    // Frames are above those that they call.
    const Addr lowest = cfa - fp_below;
    if (lowest < sp || lowest > highest) [[unlikely]] {
      stop = rule.kind() == CallerRule::Kind::compact ? out_of_frame(sp, lowest, cfa) : Stop::not_compact;
      not_compact_ = rule;
      if (stop != Stop::full) break;
      highest = highest_lowest();
    }
    pc = raw_word(cfa - pc_below) & (k_calls_push ? ~Addr{0} : arch_.address_mask);
    // A rule that does not save the frame pointer reads another word and does not use it: there is no jump to
    // mispredict.
    const Addr saved_fp = raw_word(cfa - fp_below);
    fp = rule.saves_frame_pointer() ? saved_fp : fp;
    sp = cfa + (k_calls_push ? 0 : static_cast<Addr>(std::int64_t{arch_.caller_sp_bias}));
    if constexpr (k_way == Way::link) callee = RulePlace::at(entry, rule);
    *out++ = pointer_to(pc);
  }
  // The entry of the last frame is not known by addresses.
  if (k_way == Way::address && out != next_) callee = {};
  count_warm_event(Counter::kept_rule_used, static_cast<std::uint64_t>(out - next_));
  const Addr at = CodeAddress::returned_to(pc).lookup();
  // No code: what it means that there is no return address, the cursor decides at the frame before.
  if (at < k_page_size && out != next_) {
    --out;
    stop = Stop::unknown;
  }
  at_ = at;
  sp_ = sp;
  fp_ = fp;
  next_ = out;
  callee_ = callee;
  return stop;
}

[[gnu::hot]] CallerChain::Stop CallerChain::run() noexcept {
  for (;;) {
    Stop stop = run_on<Way::link>();
    if (stop == Stop::not_linked) stop = run_on<Way::address>();
    if (stop != Stop::not_compact) return stop;
    Position position{at_, sp_, fp_};
    if (const Stop left = step_by(not_compact_, position); left != Stop::full) return left;
    go_to(position, callee_);
    if (is_full()) return Stop::full;
  }
}

/// Judges a rule that reads outside of SP and the known end of the stack. Full: a probe has found that memory readable.
CallerChain::Stop CallerChain::out_of_frame(Addr sp, Addr lowest, Addr cfa) noexcept {
  // Frames are above those that they call; whatever is not is for the cursor to judge.
  return lowest >= sp && stack_.has(lowest, cfa) ? Stop::full : Stop::unknown;
}

bool CallerChain::leave_realigned(CallerRule rule, Position& position) noexcept {
  constexpr Addr k_word = CompactRow::k_word;
  const Addr fp = position.fp;
  const Addr cfa_at = fp - rule.cfa_below_frame_pointer();
  if (cfa_at < position.sp || !stack_.has(cfa_at, fp + k_word)) return false;
  const Addr cfa = raw_word(cfa_at);
  if (cfa - k_word < position.sp || !stack_.has(cfa - k_word, cfa)) return false;
  position.pc = raw_word(cfa - k_word) & arch_.address_mask;
  position.at = CodeAddress::returned_to(position.pc).lookup();
  position.sp = cfa;
  position.fp = raw_word(fp);
  return true;
}

bool CallerChain::leave_signal_frame(Position& position) noexcept {
  const Addr ucontext = position.sp + static_cast<Addr>(std::int64_t{arch_.sigframe_ucontext});
  const UcontextOffsets offsets = ucontext_offsets(arch_);
  const auto [lowest, highest] = std::minmax({offsets.pc, offsets.sp, offsets.fp});
  if (ucontext + lowest < position.sp || !stack_.has(ucontext + lowest, ucontext + highest + CompactRow::k_word))
    return false;
  position = {0, raw_word(ucontext + offsets.sp), raw_word(ucontext + offsets.fp),
              raw_word(ucontext + offsets.pc) & arch_.address_mask};
  position.at = CodeAddress::interrupted(position.pc).lookup();
  return true;
}

[[gnu::always_inline]] inline bool CallerChain::leave(CallerRule rule, Position& position) noexcept {
  using Kind = CallerRule::Kind;
  if (rule.kind() == Kind::compact) return leave_compact(rule, position);
  return rule.kind() == Kind::realigned ? leave_realigned(rule, position) : leave_signal_frame(position);
}

/// A step by a rule of any kind, outside of the loop.
[[gnu::hot]] CallerChain::Stop CallerChain::step_by(CallerRule rule, Position& position) noexcept {
  if (rule.kind() == CallerRule::Kind::outermost) return Stop::outermost;
  const Addr sp = position.sp;
  return leave(rule, position) && arrives(sp, position) ? Stop::full : Stop::unknown;
}

namespace {

using Table = CallerChain::Table;
using Position = CallerChain::Position;
using Stop = CallerChain::Stop;

/// Whether it was interrupted matters to guesses alone, which need registers.
Lookup lookup_at(const CallerChain& chain, Addr at, MemoryWindow& window) noexcept {
  return {chain.space(), CodeAddress::returned_to(at + 1), window};
}

/// A frame's SP and frame pointer as a cursor has them, at the address that is looked up.
Position position_of(const Cursor& cursor, const Arch& arch, Addr at) noexcept {
  return {at, cursor.sp(), cursor.registers().get(arch.column(arch.fp)).value_or(0), cursor.pc()};
}

/// Frames that a compact row cannot say: a rule is kept if it leads to where the cursor has gone.
void keep_otherwise(CallerChain& chain, const KeepTicket& ticket, Cursor& before, const Cursor& after) noexcept {
  MemoryWindow window;
  Lookup lookup = lookup_at(chain, ticket.at, window);
  const ModuleVersion module = RowCache::module_of(lookup);
  FrameRow row;
  if (!before.find_row(row) || (row.origin != RowOrigin::eh_frame && row.origin != RowOrigin::debug_frame)) return;
  const CallerRule rule = rule_of_other(row, RowCache::kept_by(row, lookup), chain.arch());
  if (rule.kind() == CallerRule::Kind::compact || rule.kept_by() == KeptBy::nothing) return;
  Position position = position_of(before, chain.arch(), ticket.at);
  const Position there = position_of(after, chain.arch(), 0);
  if (chain.step_by(rule, position) == Stop::full && position.pc == there.pc && position.sp == there.sp &&
      position.fp == there.fp)
    (void)chain.rows().keep(ticket, rule, nullptr, module);
}

/// The frames of lasting modules in a walk.
struct Usual {
  const Module* module = nullptr;  ///< the one met last
  UsualFde fde;
};

/// Steps by rows of most code that is met for the first time: that of lasting modules, where nothing was registered.
/// The one source that knows it is asked, and not all of them, as RowCache::find_new() does. Goes on to where a rule is
/// known, which `known` says, or other code is, or no more room. Returns whether it has moved.
[[gnu::hot, gnu::noinline]] bool step_by_usual(CallerChain& chain, Table::Found& known, Usual& usual) noexcept {
  static constexpr ModuleVersion k_lasting;
  const RowCache& rows = chain.rows();
  std::uint64_t rows_made = 0;
  for (bool is_asked = rows.tables_are_first && !logs_rows(); is_asked && !known.holds && !chain.is_full();) {
    Position position = chain.position();
    const KeepTicket ticket = chain.ticket(position.at, known);
    const auto is_in = [&](const Module* module) { return module && module->text.contains(ticket.at); };
    if (ticket.registrations != 0) break;
    if (!is_in(usual.module)) [[unlikely]]
      if (usual.module = chain.space().modules.find_lasting(ticket.at); !is_in(usual.module)) break;
    CompactRow row;
    if (!find_usual_row(*usual.module, ticket.at, rows.layout, row, usual.fde)) break;
    const CallerRule rule = rows.rule_of(row, RowOrigin::eh_frame, KeptBy::lasting);
    if (rule.kept_by() == KeptBy::nothing || !chain.step_by_compact(rule, position)) break;
    chain.go_to(position, rows.keep(ticket, rule, &row, k_lasting));
    ++rows_made;
    if (chain.may_know(position.at)) [[unlikely]]
      known = chain.find(position.at);
    else
      known.number = Table::k_nowhere;
  }
  if (rows_made != 0) count_event(Counter::row_made, rows_made);
  return rows_made != 0;
}

/// Makes the row of the place, and its rule. Outermost: the row says so, which needs no register. Unknown: it has none.
[[gnu::noinline]] Stop make_rule(const CallerChain& chain, const KeepTicket& ticket, NewRow& row,
                                 ModuleVersion& module) noexcept {
  const RowCache& rows = chain.rows();
  MemoryWindow window;
  Lookup lookup = lookup_at(chain, ticket.at, window);
  const RowAnswer answer = rows.find_new(lookup, row);
  if (answer == RowAnswer::none || answer == RowAnswer::broken) return Stop::unknown;
  if (row.is_compact || row.is_compact_but_signed) {
    if (row.rule.is_of_module()) module = RowCache::module_of(lookup);
    return row.rule.kept_by() == KeptBy::nothing ? Stop::unknown : Stop::full;
  }
  if (!rows.says_end(row.full)) return Stop::unknown;
  rows.keep_end(ticket, lookup, row);
  return Stop::outermost;
}

/// Steps by the rule of code alike, else by a row that is made, whose rule is kept. Both are of compact rows. Full: it
/// has moved. Others are as above.
[[gnu::hot]] Stop step_by_row(CallerChain& chain, const Table::Found& known, NewRow& row) noexcept {
  KeepTicket ticket = chain.ticket(chain.position().at, known);
  const RowCache& rows = chain.rows();
  row.alike = {};  // it may have been another place's
  row.is_made = false;
  RulePlace place;
  CallerRule rule;
  if (!known.holds) rule = rows.find_alike(ticket, place, row);
  const bool is_new = rule.kept_by() == KeptBy::nothing;
  ModuleVersion module;
  if (is_new) {
    if (const Stop made = make_rule(chain, ticket, row, module); made != Stop::full) return made;
    rule = row.rule;
  }
  Position position = chain.position();
  if (!chain.step_by_compact(rule, position)) return Stop::unknown;
  // A rule without a shape is for walks of addresses alone: steps have the row made, and authenticate.
  if (is_new) place = rows.keep(ticket, rule, row.is_compact ? &row.compact : nullptr, module);
  chain.go_to(position, place);
  return Stop::full;
}

}  // namespace

CallerRule rule_of_other(const FrameRow& row, KeptBy by, const Arch& arch) noexcept {
  using Kind = CallerRule::Kind;
  constexpr std::int64_t k_word = CompactRow::k_word;
  if (row.signal_frame && arch.sigframe_ucontext >= 0) return {by, Kind::signal};
  const bool derefs_fp = row.cfa.kind == CfaRule::Kind::deref && row.cfa.reg == arch.fp && row.cfa.add == 0;
  const std::int64_t words = -row.cfa.offset / k_word;
  if (derefs_fp && arch.calls_push() && row.cfa.offset % k_word == 0 && words > 0 && words < 256)
    return {by, Kind::realigned, static_cast<std::uint8_t>(words)};
  return {};
}

[[gnu::hot]] Stop step_by_rows(CallerChain& chain) noexcept {
  Table::Found known = chain.find(chain.position().at);
  FrameRow room;
  NewRow row(room, &chain.rows().layout);
  Usual usual;
  do {
    const bool may_be_usual = !known.holds && !chain.changes().may_count(chain.position().at);
    if (may_be_usual && step_by_usual(chain, known, usual) && (known.holds || chain.is_full())) break;
    if (const Stop stop = step_by_row(chain, known, row); stop != Stop::full) return stop;
    const Addr at = chain.position().at;
    known = chain.may_know(at) ? chain.find(at) : Table::Found{};
  } while (!known.holds && !chain.is_full());
  return Stop::full;
}

bool step_by_cursor(CallerChain& chain, Cursor& cursor) noexcept {
  const Addr at = cursor.address().lookup();
  const Table::Found known = chain.find(at);
  const KeepTicket ticket = chain.ticket(at, known);
  const bool is_new = !known.holds;
  std::optional<Cursor> before;
  if (is_new) before = cursor;
  const auto moved = cursor.step();
  // The rule of code without a caller is kept by the cursor.
  if (!moved || !*moved) return false;
  // A row that the cursor keeps is compact. If that were of any use here, it would have been used.
  if (is_new && !chain.find(at).holds) keep_otherwise(chain, ticket, *before, cursor);
  const Position there = position_of(cursor, chain.arch(), cursor.address().lookup());
  ReadableStack& stack = chain.stack();
  if (!stack.holds_frame(there.sp)) stack = ReadableStack(there.sp);
  stack.share_with(cursor);
  chain.go_to(there, {});
  return true;
}

}  // namespace jitunwind
