// The chain goes from frame to frame by the rules that an address space keeps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/memory/known_stack_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/walk/address_walk_internal.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {

/// The stack that a walk is on, as far as it can be read.
class ReadableStack {
 public:
  explicit ReadableStack(Addr sp) noexcept : range_(known_stack(sp)), is_known_(!range_.empty()) {
    if (!is_known_) range_ = {page_of(sp), page_of(sp)};
  }
  /// Whether the walk may read these bytes; perhaps after a probe.
  bool has(Addr first, Addr end) noexcept {
    return first < end && ((first >= range_.begin && end <= range_.end) || reach(first, end));
  }
  bool is_known() const noexcept { return is_known_; }
  /// A frame's SP may be the end.
  bool holds_frame(Addr sp) const noexcept { return sp >= range_.begin && sp <= range_.end; }
  AddrRange range() const noexcept { return range_; }
  Addr end() const noexcept { return range_.end; }
  /// Neither probes again what the other has probed of this stack.
  void share_with(Cursor& cursor) noexcept {
    AddrRange all = range_;
    if (const AddrRange theirs = cursor.proven(); !theirs.empty()) {
      if (theirs.end < all.begin || theirs.begin > all.end) return;
      all = {std::min(all.begin, theirs.begin), std::max(all.end, theirs.end)};
    }
    if (!is_known_) range_ = all;
    cursor.set_proven(all);
  }
  /// Probes other stacks page by page, for this walk alone.
  [[gnu::noinline]] bool reach(Addr first, Addr end) noexcept {
    if (is_known_ || first < range_.begin || end < first || end - range_.end > k_farthest) return false;
    range_.end = first_unreadable_page(range_.end, page_of(end - 1) + k_page_size);
    return end <= range_.end;
  }

 private:
  static constexpr Addr k_farthest = Addr{1} << 20;
  AddrRange range_;
  bool is_known_;
};

/// A frame as far as a walk of addresses knows it, and the addresses of the frames that it has passed. Precondition:
/// the space keeps rows.
class CallerChain {
 public:
  using Table = KeptRules::Table;
  enum class Stop { full, outermost, unknown, not_compact, not_linked };
  /// A frame: the address to look up, SP and frame pointer. Its pc is set where a function says so.
  struct Position {
    Addr at = 0;
    Addr sp = 0;
    Addr fp = 0;
    Addr pc = 0;
  };

  CallerChain(const AddressSpace& space, const WalkStart& start, WalkPart part, std::span<void*> into) noexcept
      : space_(space), at_(start.address.lookup()), sp_(start.sp), fp_(start.fp), stack_(start.sp), into_(into) {
    if (part == WalkPart::whole && !into.empty()) arrive(start.address.value());
    start_found_ = found();
  }

  std::size_t found() const noexcept { return static_cast<std::size_t>(next_ - into_.data()); }
  bool is_full() const noexcept { return next_ == end_; }
  /// Steps made.
  std::size_t depth() const noexcept { return found() - start_found_; }
  /// Forgets all steps behind the first `depth`.
  void cut_to(std::size_t depth) noexcept { next_ = into_.data() + start_found_ + depth; }

  const AddressSpace& space() const noexcept { return space_; }
  const Arch& arch() const noexcept { return arch_; }
  const RowCache& rows() const noexcept { return rows_; }
  const CodeChanges& changes() const noexcept { return changes_; }
  Position position() const noexcept { return {at_, sp_, fp_}; }
  ReadableStack& stack() noexcept { return stack_; }
  const ReadableStack& stack() const noexcept { return stack_; }

  /// Goes from frame to frame until there is no more room, or no caller. Unknown: no rule, or one that does not help.
  Stop run() noexcept;

  /// The caller uses the rule that was read, because the entry itself may belong to another address by now.
  [[gnu::hot, gnu::noinline]] Table::Found find(Addr at) noexcept {
    return rules_.table.find(at, [&](CallerRule rule) { return cipher(rule, at); });
  }
  /// False: find() finds nothing.
  bool may_know(Addr at) const noexcept { return rules_.table.may_have(at); }
  /// The ticket to take before this frame's row is looked for. `known` is the table's answer for its address.
  KeepTicket ticket(Addr at, const Table::Found& known) const noexcept {
    return {at, changes_.number(at, everywhere_), {}, callee_, known.number};
  }
  /// Moves `position` alone, by a rule of any kind.
  [[gnu::noinline]] Stop step_by(CallerRule rule, Position& position) noexcept;
  /// Does the same inline. False: unknown. Precondition: the rule is compact.
  [[gnu::always_inline]] bool step_by_compact(CallerRule rule, Position& position) noexcept {
    const Addr sp = position.sp;
    return leave_compact(rule, position) && arrives(sp, position);
  }

  /// Goes on at a caller, that was found by the entry `callee`; none: by something else.
  void go_to(const Position& caller, RulePlace callee) noexcept {
    at_ = caller.at;
    sp_ = caller.sp;
    fp_ = caller.fp;
    callee_ = callee;
    arrive(caller.pc);
  }

 private:
  /// How the loop comes to the rule of the next frame.
  enum class Way { link, address };
  template <Way k_way>
  Stop find_rule(const Table::Entries& entries, RecentRules& recent, Addr at, RulePlace callee, Table::Number& entry,
                 CallerRule& rule) noexcept;
  template <Way k_way, bool k_calls_push>
  Stop run_on() noexcept;
  template <Way k_way>
  Stop run_on() noexcept {
    return arch_.calls_push() ? run_on<k_way, true>() : run_on<k_way, false>();
  }
  std::uint64_t cipher(KeptBy by, std::uint64_t registrations) const noexcept {
    return Table::cipher(RowCache::version_of(registrations, by, module_));
  }
  /// Code of lasting modules has one version for all of the walk, where nothing was ever registered.
  std::uint64_t cipher(CallerRule rule, Addr at) noexcept {
    if (!changes_.may_count(at) && !rule.is_of_module()) [[likely]]
      return cipher_of_everywhere_;
    if (rule.is_of_module()) (void)rows_.module_of(at, module_);
    return cipher(rule.kept_by(), changes_.number(at, everywhere_));
  }
  /// No stack is where addresses are so small that what a rule reads could be below 0.
  bool is_on_stack() const noexcept { return stack_.end() >= CallerRule::k_most_below_cfa; }
  /// A rule whose lowest word is not above this reads nothing beyond the known end of the stack. Precondition:
  /// is_on_stack().
  Addr highest_lowest() const noexcept { return stack_.end() - CallerRule::k_most_below_cfa; }
  [[gnu::noinline]] Stop out_of_frame(Addr sp, Addr lowest, Addr cfa) noexcept;
  bool leave(CallerRule rule, Position& position) noexcept;
  [[gnu::always_inline]] bool leave_compact(CallerRule rule, Position& position) noexcept {
    const Addr cfa = (rule.base_is_frame_pointer() ? position.fp : position.sp) + rule.cfa_offset();
    const Addr pc_below = arch_.calls_push() ? CompactRow::k_word : rule.return_address_below_cfa();
    const Addr fp_below = rule.frame_pointer_below_cfa();
    const Addr lowest = cfa - fp_below;
    if (lowest < position.sp || !stack_.has(lowest, cfa)) return false;
    position.pc = raw_word(cfa - pc_below) & arch_.address_mask;
    position.at = CodeAddress::returned_to(position.pc).lookup();
    position.sp = cfa + static_cast<Addr>(std::int64_t{arch_.caller_sp_bias});
    if (rule.saves_frame_pointer()) position.fp = raw_word(cfa - fp_below);
    return true;
  }
  /// Whether a frame's caller may be there, whose stack is known from now on. `sp` is the frame's.
  bool arrives(Addr sp, const Position& caller) noexcept {
    if (caller.sp <= sp || caller.pc < k_page_size) return false;
    if (!stack_.holds_frame(caller.sp)) [[unlikely]]
      change_stack(caller.sp);
    return true;
  }
  [[gnu::noinline]] void change_stack(Addr sp) noexcept { stack_ = ReadableStack(sp); }
  bool leave_realigned(CallerRule rule, Position& position) noexcept;
  bool leave_signal_frame(Position& position) noexcept;
  void arrive(Addr pc) noexcept { *next_++ = pointer_to(pc); }

  const AddressSpace& space_;
  Addr at_;
  Addr sp_;
  Addr fp_;
  ReadableStack stack_;
  std::span<void*> into_;
  void** next_ = into_.data();
  void** end_ = next_ + into_.size();
  std::size_t start_found_ = 0;
  const Arch& arch_ = space_.arch;
  const RowCache& rows_ = *space_.row_cache;
  KeptRules& rules_ = rows_.rules;
  const CodeChanges& changes_ = rows_.changes;
  const std::uint64_t everywhere_ = changes_.everywhere();
  const std::uint64_t cipher_of_everywhere_ = Table::cipher(everywhere_);
  RulePlace callee_{};  // by which the walk came here
  ModuleVersion module_{};
  bool has_linked_ = false;  // one entry to another
  CallerRule not_compact_;   // by which run_on() could not go on
};

/// The rule of a row that is not compact, in a word. Kind compact: there is none.
CallerRule rule_of_other(const FrameRow& row, KeptBy by, const Arch& arch) noexcept;

/// Steps by rows that need only pc, SP and frame pointer, until a rule is known of the place or there is no more room:
/// full. Outermost: the place's row says so. Unknown: no rule is known, and the row does not help. Needs room on the
/// stack (small_stack_internal.h).
CallerChain::Stop step_by_rows(CallerChain& chain) noexcept;

/// Steps the cursor, has the chain go on where it is then, and keeps a rule of the place it left, if one says it.
/// False: the cursor has not moved. Precondition: it stands where the chain does. Needs room on the stack.
bool step_by_cursor(CallerChain& chain, Cursor& cursor) noexcept;

}  // namespace jitunwind
