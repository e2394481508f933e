#include "jitunwind/unwind_core/walk/caller_chain_p.h"

#include <algorithm>

#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {

/// Sets the rule at `at`, and its entry where that is known. A link tells the entry before the return address was read:
/// another walk this way looks nothing up but its first frame. Stacks of the same functions in ever other orders would
/// replace each link at each walk, and threads would wait for each other's cache lines. So a walk replaces one link,
/// and goes by addresses where a second one does not help.
template <CallerChain::Way k_way>
[[gnu::always_inline]] inline CallerChain::Stop CallerChain::find_rule(const Table::Entries& entries, Addr at,
                                                                       RulePlace callee, Table::Number& entry,
                                                                       CallerRule& rule) noexcept {
  const auto cipher_of = [&](CallerRule known) { return cipher(known, at); };
  if constexpr (k_way == Way::link) {
    entry = entries.in_bounds(callee.next);
    rule = entries.value(entry);
    if (entries.holds(entry, rule, at, cipher_of(rule))) [[likely]]
      return Stop::full;
    if (has_linked_) return Stop::not_linked;
  } else {
    entry = RulePlace::k_none;
    if (rules_.recent.find(at, cipher_of, rule)) [[likely]]
      return Stop::full;
  }
  const Table::Found found = find(at);
  if (!found.holds) return Stop::unknown;
  rule = found.value;
  if constexpr (k_way == Way::link) {
    entry = found.number;
    if (callee.number != RulePlace::k_none) {
      rows_.link(callee, entry);
      has_linked_ = true;
    }
  } else {
    rules_.recent.put(at, entries, found);
  }
  return Stop::full;
}

/// The chain from one frame to the next bounds the time of a walk, so all that a step reads and writes is in registers.
/// `k_calls_push`: the return address is what a call has pushed, at CFA - word, and SP is the CFA then.
template <CallerChain::Way k_way, bool k_calls_push>
[[gnu::hot]] CallerChain::Stop CallerChain::run_on() noexcept {
  if (!is_on_stack()) return Stop::unknown;
  Addr at = at_;
  Addr sp = sp_;
  Addr fp = fp_;
  void** out = next_;
  Addr highest = highest_lowest();
  const Table::Entries entries = rules_.table.entries();
  RulePlace callee = callee_;
  Stop stop = Stop::full;
  while (out != end_) {
    Table::Number entry;
    CallerRule rule;
    if (stop = find_rule<k_way>(entries, at, callee, entry, rule); stop != Stop::full) [[unlikely]]
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
    const Addr pc = raw_word(cfa - pc_below) & (k_calls_push ? ~Addr{0} : arch_.address_mask);
    // A rule that does not save the frame pointer reads another word and does not use it: there is no jump to
    // mispredict.
    const Addr saved_fp = raw_word(cfa - fp_below);
    fp = rule.saves_frame_pointer() ? saved_fp : fp;
    sp = cfa + (k_calls_push ? 0 : static_cast<Addr>(std::int64_t{arch_.caller_sp_bias}));
    at = pc - 1;
    if constexpr (k_way == Way::link) callee = RulePlace::at(entry, rule);
    *out++ = pointer_to(pc);
  }
  // The entry of the last frame is not known by addresses.
  if (k_way == Way::address && out != next_) callee = {};
  count_warm_event(Counter::kept_rule_used, static_cast<std::uint64_t>(out - next_));
  at = CodeAddress::returned_to(at + 1).lookup();
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

}  // namespace jitunwind
