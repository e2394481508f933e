#include "jitunwind/sdk/address_walk_p.h"

#include <algorithm>
#include <optional>

#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/readable_stack_p.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/sdk/walk_memory_p.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/raw_access_p.h"
#include "jitunwind/unwind_core/memory/small_stack_p.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/page_p.h"

namespace jitunwind {
namespace {

using Table = KeptRules::Table;

Addr word_at(Addr at) noexcept { return raw_word(reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(at))); }

/// Where the last walk of the thread began among the rules: the next one mostly begins there, too.
constinit thread_local std::uint32_t first_entry = 0;

class AddressWalk {
 public:
  enum class Stop { full, outermost, unknown, not_compact };

  AddressWalk(const WalkStart& start, WalkPart part, std::span<void*> into) noexcept
      : at_(start.address.lookup()), sp_(start.sp), fp_(start.fp), stack_(start.sp), into_(into) {
    if (part == WalkPart::whole && !into.empty()) arrive(start.address.value());
    start_found_ = found();
  }

  std::size_t found() const noexcept { return static_cast<std::size_t>(next_ - into_.data()); }
  bool is_full() const noexcept { return next_ == end_; }
  /// Steps made.
  std::size_t depth() const noexcept { return found() - start_found_; }

  /// From frame to frame until there is no more room or no caller. Unknown: all registers are needed to go on, or to
  /// tell whether the last address is one of code.
  Stop run() noexcept { return go_on_by_rows(run_by_table()); }
  /// The same from where the table has stopped.
  Stop go_on_by_rows(Stop stop) noexcept {
    while (stop == Stop::unknown && run_by_rows()) stop = is_full() ? Stop::full : run_by_table();
    return ends_well(stop) ? stop : Stop::unknown;
  }
  /// The last address was never looked up, as those before it were.
  bool ends_well(Stop stop) noexcept { return stop != Stop::full || ends_in_code(); }
  /// To as many steps as the cursor has made.
  void cut_to(std::size_t depth) noexcept { next_ = into_.data() + start_found_ + depth; }
  /// Unknown: no entry, or one that does not help.
  Stop run_by_table() noexcept;
  /// The same without looking at what is remembered, as far as `end`; or as far as a frame whose SP is remembered.
  enum class Until : bool { end, met };
  Stop run_to(void** end, Until until = Until::end) noexcept;
  template <bool k_calls_push, Until k_until>
  Stop run_on(void** end) noexcept;
  bool may_remember() const noexcept { return arch_.calls_push() && stack_.is_known(); }
  /// Once a walk: what was refused is refused to all of it.
  WalkMemory* ask_for_memory() noexcept {
    if (asked_for_memory_ || !may_remember()) return nullptr;
    asked_for_memory_ = true;
    return WalkMemory::acquire();
  }
  /// At the end of the walk, which run() ended with `stop`.
  void finish(const WalkStart& start, Stop stop) noexcept;
  /// Steps the cursor, goes on where it is then, and has the table know the place it left, if it can. False: it has not
  /// moved. Precondition: it stands where this walk does.
  bool step(Cursor& cursor) noexcept;
  AddrRange readable() const noexcept { return stack_.range(); }
  void share_readable_with(Cursor& cursor) noexcept { stack_.share_with(cursor); }

 private:
  std::uint64_t registrations(Addr at) const noexcept { return changes_.number(at, everywhere_); }
  std::uint64_t cipher(KeptBy by, std::uint64_t registrations) const noexcept {
    return Table::cipher(RowCache::version_of(registrations, by, module_));
  }
  /// Where nothing was ever registered, and modules stay, the version is the same for all of the walk.
  std::uint64_t cipher(CallerRule rule, Addr at) noexcept {
    if (!changes_.may_count(at) && !rule.is_of_module()) [[likely]]
      return cipher_of_everywhere_;
    if (rule.is_of_module()) (void)rows_.module_of(at, module_);
    return cipher(rule.kept_by(), registrations(at));
  }
  /// The next walk this way finds the entry by its guess.
  void lead_on(RulePlace from, Table::Number to) noexcept {
    if (from.number == RulePlace::k_none)
      first_entry = to;
    else
      rows_.link(from, to);
  }
  /// By the guess of the entry that the frame before was left by, if there is one.
  Table::Found find_behind(RulePlace callee, Addr at) noexcept;
  /// The rule is what held: the entry itself may be another's by now.
  [[gnu::hot, gnu::noinline]] Table::Found find(Addr at) noexcept {
    return table_.find(at, [&](CallerRule rule) { return cipher(rule, at); });
  }
  bool ends_in_code() noexcept {
    if (depth() == 0) return true;
    const Module* const module = local_space().modules.find_lasting(at_);
    return (module && module->text.contains(at_)) || find(at_).holds || ends_in_other_code();
  }
  [[gnu::noinline]] bool ends_in_other_code() const noexcept {
    return with_room([&] {
      MemoryWindow window;
      AddrRange known;
      return bool(local_space().expect_code(CodeAddress::returned_to(at_ + 1), window, known));
    });
  }
  /// No stack is where addresses are so small that what a rule reads could be below 0.
  bool is_on_stack() const noexcept { return stack_.end() >= CallerRule::k_most_below_cfa; }
  /// Where the lowest word that a rule reads is not above this, all of them are on the stack, as far as it is known.
  /// Precondition: is_on_stack().
  Addr highest_lowest() const noexcept { return stack_.end() - CallerRule::k_most_below_cfa; }
  Addr return_address_below_cfa(CallerRule rule) const noexcept;
  [[gnu::noinline]] bool run_by_rows() noexcept;
  bool step_by_row(const Table::Found& known) noexcept;
  /// Of a frame: the address to look up, SP and frame pointer; and its pc, where that is asked for.
  struct Position {
    Addr at;
    Addr sp;
    Addr fp;
    Addr pc = 0;
  };
  [[gnu::noinline]] Stop out_of_frame(Addr sp, Addr lowest, Addr cfa) noexcept;
  [[gnu::noinline]] Stop step_by(CallerRule rule, Position& position) noexcept;
  bool leave(CallerRule rule, Position& position) noexcept;
  bool leave_compact(CallerRule rule, Position& position) noexcept;
  bool leave_realigned(CallerRule rule, Position& position) noexcept;
  bool leave_signal_frame(Position& position) noexcept;
  void keep_otherwise(const CodeQuestion& question, Cursor& before, const Cursor& after) noexcept;
  void keep_end(const CodeQuestion& question, Cursor& cursor) noexcept;
  void keep(const CodeQuestion& question, CallerRule rule, const ModuleVersion& module) noexcept;
  /// What is asked for before the row is.
  CodeQuestion question(const Table::Found& known) const noexcept {
    return {at_, registrations(at_), callee_, {known.number}};
  }
  /// Whether it was interrupted matters to guesses alone, which need registers.
  Lookup lookup_here(MemoryWindow& window) const noexcept {
    return {local_space(), CodeAddress::returned_to(at_ + 1), window};
  }
  void follow(std::size_t number) noexcept;
  void remember(const WalkStart& start) noexcept;
  void go_to(const Position& position) noexcept {
    at_ = position.at;
    sp_ = position.sp;
    fp_ = position.fp;
    arrive(position.pc);
  }
  void arrive(Addr pc) noexcept { *next_++ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pc)); }

  Addr at_;
  Addr sp_;
  Addr fp_;
  ReadableStack stack_;
  std::span<void*> into_;
  void** next_ = into_.data();
  void** end_ = next_ + into_.size();
  std::size_t start_found_ = 0;
  const Arch& arch_ = local_space().arch;
  const RowCache& rows_ = *local_space().row_cache;
  Table& table_ = rows_.rules.table;
  const CodeChanges& changes_ = registration_changes();
  const std::uint64_t everywhere_ = changes_.everywhere();
  const std::uint64_t cipher_of_everywhere_ = Table::cipher(everywhere_);
  RulePlace callee_{};  // by which the walk came here
  ModuleVersion module_{};
  CallerRule not_compact_;  // by which run_on() could not go on
  const std::uint64_t first_counts_ = changes_.first_counts();
  std::size_t remembered_ = 0;
  bool asked_for_memory_ = false;
  WalkMemory* memory_ = (into_.size() > WalkMemory::k_few && WalkMemory::has_walk()) ? ask_for_memory() : nullptr;
};

/// Everything that a step reads and writes is in registers: the chain from one frame to the next is what takes time.
/// `k_calls_push`: the return address is what a call has pushed, at CFA - word, and SP is the CFA then.
template <bool k_calls_push, AddressWalk::Until k_until>
[[gnu::hot]] AddressWalk::Stop AddressWalk::run_on(void** const end) noexcept {
  if (!is_on_stack()) return Stop::unknown;
  Addr at = at_;
  Addr sp = sp_;
  Addr fp = fp_;
  void** out = next_;
  Addr highest = highest_lowest();
  const Table::Entries entries = table_.entries();
  RulePlace callee = callee_;
  if (callee.number == RulePlace::k_none) callee.guess = first_entry;
  Stop stop = Stop::full;
  while (out != end) {
    Table::Number entry = entries.in_bounds(callee.guess);
    CallerRule rule = entries.value(entry);
    if (!entries.holds(entry, rule, at, cipher(rule, at))) [[unlikely]] {
      const Table::Found found = find(at);
      if (!found.holds) {
        stop = Stop::unknown;
        break;
      }
      entry = found.number;
      rule = found.value;
      lead_on(callee, entry);
    }
    const Addr cfa = (rule.base_is_frame_pointer() ? fp : sp) + rule.cfa_offset();
    const Addr pc_below = k_calls_push ? CompactRow::k_word : return_address_below_cfa(rule);
    const Addr fp_below = rule.frame_pointer_below_cfa();
    // Frames are above those that they call.
    const Addr lowest = cfa - (k_calls_push ? fp_below : std::max(pc_below, fp_below));
    if (lowest < sp || lowest > highest || (!k_calls_push && pc_below == 0)) [[unlikely]] {
      stop = rule.kind() == CallerRule::Kind::compact ? out_of_frame(sp, lowest, cfa) : Stop::not_compact;
      not_compact_ = rule;
      if (stop != Stop::full) break;
      highest = highest_lowest();
    }
    const Addr pc = word_at(cfa - pc_below) & (k_calls_push ? ~Addr{0} : arch_.address_mask);
    // Where the frame pointer is not saved another word is read, and not used: there is no jump to mispredict.
    const Addr saved_fp = word_at(cfa - fp_below);
    fp = rule.saves_frame_pointer() ? saved_fp : fp;
    sp = cfa + (k_calls_push ? 0 : static_cast<Addr>(std::int64_t{arch_.caller_sp_bias}));
    at = pc - 1;
    callee = RulePlace::at(entry, rule);
    *out++ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pc));
    if (k_until == Until::met && memory_->has_frame_at(sp)) break;
  }
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

[[gnu::hot]] AddressWalk::Stop AddressWalk::run_to(void** end, Until until) noexcept {
  for (;;) {
    Stop stop = Stop::full;
    if (until == Until::met)
      stop = run_on<true, Until::met>(end);
    else
      stop = arch_.calls_push() ? run_on<true, Until::end>(end) : run_on<false, Until::end>(end);
    if (stop != Stop::not_compact) return stop;
    Position position{at_, sp_, fp_};
    if (const Stop left = step_by(not_compact_, position); left != Stop::full) return left;
    go_to(position);
    if (next_ == end) return Stop::full;
  }
}

/// Looks for the frame among those of the last walk: for each of the first ones, then after as many as were walked
/// before.
[[gnu::hot]] AddressWalk::Stop AddressWalk::run_by_table() noexcept {
  constexpr std::size_t k_first = 16;
  const auto end_of = [&](std::size_t frames) {
    return next_ + std::min(frames, static_cast<std::size_t>(end_ - next_));
  };
  if (!memory_) {
    const Stop stop = run_to(end_of(WalkMemory::k_few));
    if (stop != Stop::full || is_full()) return stop;
    memory_ = ask_for_memory();
    if (!memory_) return run_to(end_);
  }
  for (std::size_t frames = k_first;;) {
    const std::size_t known = memory_->everywhere() == everywhere_ ? memory_->find(at_, sp_, fp_) : WalkMemory::k_none;
    if (known != WalkMemory::k_none && (*memory_)[0].sp <= stack_.end()) {
      follow(known);
      if (is_full()) return Stop::full;
    }
    void** const end = end_of(frames);
    const Stop stop = run_to(end, frames == k_first ? Until::met : Until::end);
    if (stop != Stop::full || is_full()) return stop;
    if (next_ == end) frames *= 2;
  }
}

Table::Found AddressWalk::find_behind(RulePlace callee, Addr at) noexcept {
  const Table::Entries entries = table_.entries();
  const Table::Number guess = entries.in_bounds(callee.guess);
  const CallerRule rule = entries.value(guess);
  if (entries.holds(guess, rule, at, cipher(rule, at))) return {guess, rule, true};
  return find(at);
}

/// From frame `number` of the last walk to its callers, as long as the stack holds what it held then. The same frame,
/// the same rules and the same words that they read lead to the same caller; no step waits for the one before.
void AddressWalk::follow(std::size_t number) noexcept {
  WalkMemory& memory = *memory_;
  const std::size_t first = number;
  const bool unchanged = memory.nothing_changed(changes_, first_counts_);
  void** out = next_;
  void** const last = out + std::min(number, static_cast<std::size_t>(end_ - out));
  for (const PastFrame* frame = &memory[number]; out != last; --frame) {
    const PastFrame& caller = frame[-1];
    if (!unchanged && changes_.stamp(CodeAddress::returned_to(frame->pc).lookup()) != frame->changes) {
      memory.set_stale();
      break;
    }
    if (word_at(caller.sp - CompactRow::k_word) != caller.pc || word_at(frame->fp_at) != caller.fp) break;
    *out++ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(caller.pc));
  }
  number -= static_cast<std::size_t>(out - next_);
  if (number == 0 && memory.first_counts() != first_counts_) memory.confirm(first + 1, everywhere_, first_counts_);
  next_ = out;
  at_ = CodeAddress::returned_to(memory[number].pc).lookup();
  sp_ = memory[number].sp;
  // One that decided nothing may be another one now, up to where the caller's was read.
  std::size_t passed = first;
  while (passed > number && !memory[passed].saves_fp()) --passed;
  if (passed > number) fp_ = memory[number].fp;
  remembered_ += first - number;
}

/// Goes the way of this walk again and records it: the walk itself has no time for that.
void AddressWalk::remember(const WalkStart& start) noexcept {
  memory_->begin_recording();
  Position position{start.address.lookup(), start.sp, start.fp, start.address.value()};
  RulePlace callee;
  std::size_t number = depth();
  // What is recorded are frames that were returned to, up to the first behind which the way is not by a compact rule.
  std::size_t count = start.address.is_return_address() ? number + 1 : number;
  for (;; --number) {
    memory_->record(number, {position.sp, position.pc, position.fp, 0, changes_.stamp(position.at), false});
    if (number == 0) break;
    const auto [entry, rule, holds] = find_behind(callee, position.at);
    if (!holds) return;
    callee = RulePlace::at(entry, rule);
    if (rule.kind() != CallerRule::Kind::compact || rule.kept_by() != KeptBy::lasting) count = number;
    if (step_by(rule, position) != Stop::full || !stack_.is_known()) return;
    memory_->record_rule(
        number, rule.base_is_frame_pointer(),
        rule.saves_frame_pointer() ? std::optional(position.sp - rule.frame_pointer_below_cfa()) : std::nullopt);
  }
  memory_->confirm(std::min(count, WalkMemory::k_capacity), everywhere_, first_counts_);
}

void AddressWalk::finish(const WalkStart& start, Stop stop) noexcept {
  if (!memory_) return;
  if (stop != Stop::unknown && memory_->wants(remembered_, {next_ - depth(), depth()})) remember(start);
  memory_->release();
}

/// What a rule reads is not between SP and the end of what is known of the stack. Full: after a look it is.
AddressWalk::Stop AddressWalk::out_of_frame(Addr sp, Addr lowest, Addr cfa) noexcept {
  // Frames are above those that they call; whatever is not is for the cursor to judge.
  return lowest >= sp && stack_.has(lowest, cfa) ? Stop::full : Stop::unknown;
}

/// By a rule of any kind, outside of the loop.
[[gnu::hot]] AddressWalk::Stop AddressWalk::step_by(CallerRule rule, Position& position) noexcept {
  if (rule.kind() == CallerRule::Kind::outermost) return Stop::outermost;
  const Addr sp = position.sp;
  if (!leave(rule, position) || position.sp <= sp || position.pc < k_page_size) return Stop::unknown;
  if (!stack_.holds_frame(position.sp)) stack_ = ReadableStack(position.sp);
  return Stop::full;
}

bool AddressWalk::leave(CallerRule rule, Position& position) noexcept {
  using Kind = CallerRule::Kind;
  if (rule.kind() == Kind::compact) return leave_compact(rule, position);
  return rule.kind() == Kind::realigned ? leave_realigned(rule, position) : leave_signal_frame(position);
}

[[gnu::hot]] bool AddressWalk::leave_compact(CallerRule rule, Position& position) noexcept {
  const Addr cfa = (rule.base_is_frame_pointer() ? position.fp : position.sp) + rule.cfa_offset();
  const Addr pc_below = return_address_below_cfa(rule);
  const Addr fp_below = rule.frame_pointer_below_cfa();
  const Addr lowest = cfa - std::max(pc_below, fp_below);
  if (pc_below == 0 || lowest < position.sp || !stack_.has(lowest, cfa)) return false;
  position.pc = word_at(cfa - pc_below) & arch_.address_mask;
  position.at = CodeAddress::returned_to(position.pc).lookup();
  position.sp = cfa + static_cast<Addr>(std::int64_t{arch_.caller_sp_bias});
  if (rule.saves_frame_pointer()) position.fp = word_at(cfa - fp_below);
  return true;
}

bool AddressWalk::leave_realigned(CallerRule rule, Position& position) noexcept {
  constexpr Addr k_word = CompactRow::k_word;
  const Addr fp = position.fp;
  const Addr cfa_at = fp - rule.cfa_below_frame_pointer();
  if (cfa_at < position.sp || !stack_.has(cfa_at, fp + k_word)) return false;
  const Addr cfa = word_at(cfa_at);
  if (cfa - k_word < position.sp || !stack_.has(cfa - k_word, cfa)) return false;
  position.pc = word_at(cfa - k_word) & arch_.address_mask;
  position.at = CodeAddress::returned_to(position.pc).lookup();
  position.sp = cfa;
  position.fp = word_at(fp);
  return true;
}

bool AddressWalk::leave_signal_frame(Position& position) noexcept {
  const Addr ucontext = position.sp + static_cast<Addr>(std::int64_t{arch_.sigframe_ucontext});
  const UcontextOffsets offsets = ucontext_offsets(arch_);
  const auto [lowest, highest] = std::minmax({offsets.pc, offsets.sp, offsets.fp});
  if (ucontext + lowest < position.sp || !stack_.has(ucontext + lowest, ucontext + highest + CompactRow::k_word))
    return false;
  position = {0, word_at(ucontext + offsets.sp), word_at(ucontext + offsets.fp),
              word_at(ucontext + offsets.pc) & arch_.address_mask};
  position.at = CodeAddress::interrupted(position.pc).lookup();
  return true;
}

/// 0: it is not known.
[[gnu::hot]] Addr AddressWalk::return_address_below_cfa(CallerRule rule) const noexcept {
  if (arch_.calls_push() || rule.shape() == 0) return arch_.calls_push() ? CompactRow::k_word : 0;
  CompactRow row;
  rows_.rules.shapes.row(rule.shape(), 0, row);
  return row.slots[CompactLayout::k_return_address] * CompactRow::k_word;
}

/// By rows, if pc, SP and frame pointer are enough for them, until the table knows the place. False: it does not, and
/// nor does its row help.
[[gnu::hot]] bool AddressWalk::run_by_rows() noexcept {
  Table::Found known = find(at_);
  do {
    if (!step_by_row(known)) return false;
    known = is_full() ? Table::Found{} : find(at_);
  } while (!known.holds && !is_full());
  return true;
}

/// False: it has not moved.
[[gnu::hot]] bool AddressWalk::step_by_row(const Table::Found& known) noexcept {
  const CodeQuestion question = this->question(known);
  MemoryWindow window;
  Lookup lookup = lookup_here(window);
  NewRow row(rows_.layout);
  const Found found = rows_.find_new(lookup, row);
  if (!found || !*found || !row.is_compact) return false;
  const RowOrigin origin = row.full.origin;
  const CallerRule rule = rows_.rule_of(row.compact.row, origin, RowCache::kept_by(origin, lookup));
  Position position{at_, sp_, fp_};
  if (rule.kept_by() == KeptBy::nothing || step_by(rule, position) != Stop::full) return false;
  callee_ =
      rows_.keep(question, rule, row.compact.row, rule.is_of_module() ? RowCache::module_of(lookup) : ModuleVersion{});
  go_to(position);
  return true;
}

/// Where the code itself says that it has no caller. `question`: from before the row was looked for.
void AddressWalk::keep_end(const CodeQuestion& question, Cursor& cursor) noexcept {
  MemoryWindow window;
  Lookup lookup = lookup_here(window);
  const ModuleVersion module = RowCache::module_of(lookup);
  FrameRow row;
  if (cursor.stop_reason() != StopReason::outermost || !cursor.find_row(row)) return;
  if (row.rule(row.ra == k_no_reg ? arch_.ra : row.ra).kind != RegRule::Kind::undefined) return;
  keep(question, {RowCache::kept_by(row.origin, lookup), CallerRule::Kind::outermost}, module);
}

/// Frames that a compact row cannot say: a rule is kept if it leads to where the cursor has gone.
void AddressWalk::keep_otherwise(const CodeQuestion& question, Cursor& before, const Cursor& after) noexcept {
  using Kind = CallerRule::Kind;
  constexpr std::int64_t k_word = CompactRow::k_word;
  MemoryWindow window;
  Lookup lookup = lookup_here(window);
  const ModuleVersion module = RowCache::module_of(lookup);
  FrameRow row;
  if (!before.find_row(row) || (row.origin != RowOrigin::eh_frame && row.origin != RowOrigin::debug_frame)) return;
  const KeptBy by = RowCache::kept_by(row.origin, lookup);
  const bool derefs_fp = row.cfa.kind == CfaRule::Kind::deref && row.cfa.reg == arch_.fp && row.cfa.add == 0;
  const std::int64_t words = -row.cfa.offset / k_word;
  CallerRule rule;
  if (row.signal_frame && arch_.sigframe_ucontext >= 0)
    rule = {by, Kind::signal};
  else if (derefs_fp && arch_.calls_push() && row.cfa.offset % k_word == 0 && words > 0 && words < 256)
    rule = {by, Kind::realigned, static_cast<std::uint8_t>(words)};
  else
    return;
  const auto fp_of = [&](const Cursor& c) { return c.registers().get(arch_.column(arch_.fp)).value_or(0); };
  Position position{at_, before.sp(), fp_of(before)};
  if (step_by(rule, position) == Stop::full && position.pc == after.pc() && position.sp == after.sp() &&
      position.fp == fp_of(after))
    keep(question, rule, module);
}

void AddressWalk::keep(const CodeQuestion& question, CallerRule rule, const ModuleVersion& module) noexcept {
  if (rule.kept_by() != KeptBy::nothing) (void)rows_.keep(question, rule, module);
}

bool AddressWalk::step(Cursor& cursor) noexcept {
  at_ = cursor.address().lookup();
  const Table::Found known = find(at_);
  const CodeQuestion question = this->question(known);
  callee_ = {};
  const bool is_new = !known.holds;
  std::optional<Cursor> before;
  if (is_new) before = cursor;
  const auto moved = cursor.step();
  if (!moved || !*moved) {
    if (is_new) keep_end(question, cursor);
    return false;
  }
  // A row that the cursor keeps is compact. If that were of any use here, it would have been used.
  if (is_new && !find(at_).holds) keep_otherwise(question, *before, cursor);
  at_ = cursor.address().lookup();
  sp_ = cursor.sp();
  fp_ = cursor.registers().get(arch_.column(arch_.fp)).value_or(0);
  if (!stack_.holds_frame(sp_)) stack_ = ReadableStack(sp_);
  stack_.share_with(cursor);
  arrive(cursor.pc());
  return true;
}

Cursor::Top top_of(const WalkStart& start) noexcept {
  return start.address.is_return_address() ? Cursor::Top::returned_to : Cursor::Top::interrupted;
}

/// At the frame where the walk begins, with all its registers. `readable`: of the stack, as far as it is known.
[[gnu::always_inline]] inline Cursor cursor_at_start(const WalkStart& start, AddrRange readable) noexcept {
  if (start.ucontext) return cursor_at(start.ucontext, top_of(start));
  // Out of this library's own frames.
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor cursor = cursor_at(context, Cursor::Top::returned_to);
  cursor.set_proven(readable);
  while (cursor.sp() != start.sp || cursor.pc() != start.address.value())
    if (const auto moved = cursor.step(); !moved || !*moved) break;
  return cursor;
}

/// Steps that the table does not know, with all registers, which frames before them may have saved.
[[gnu::noinline]] void walk_by_cursor(AddressWalk& walk, const WalkStart& start) noexcept {
  Cursor cursor = cursor_at_start(start, walk.readable());
  const std::size_t first = cursor.depth();
  for (;;) {
    walk.share_readable_with(cursor);
    while (cursor.depth() - first < walk.depth())
      if (const auto moved = cursor.step(); !moved || !*moved) return walk.cut_to(cursor.depth() - first);
    if (walk.is_full()) return;
    const Addr sp_before = cursor.sp();
    if (!walk.step(cursor)) return;
    if (cursor.sp() <= sp_before) break;
    if (walk.run() != AddressWalk::Stop::unknown) return;
  }
  // Walks that always go up end; of others only the cursor knows when they come round.
  while (!walk.is_full() && walk.step(cursor)) {
  }
}

/// By which call_with_room() knows the walk again: from the same place at the same depth.
const void* place_of(const WalkStart& start) noexcept {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(hash_with(start.sp, start.address.value())));
}

/// From where the table knew no more.
AddressWalk::Stop walk_new_places(AddressWalk& walk, const WalkStart& start, AddressWalk::Stop stop) noexcept {
  using Stop = AddressWalk::Stop;
  const Stop ended = stop == Stop::unknown ? walk.go_on_by_rows(stop) : Stop::unknown;
  if (ended == Stop::unknown) walk_by_cursor(walk, start);
  return ended;
}

/// Where another function than the dynamic linker lists the modules, nothing that is kept counts.
[[gnu::noinline]] std::size_t walk_listed_modules(const WalkStart& start, WalkPart part,
                                                  std::span<void*> into) noexcept {
  Cursor cursor(local_space_of_listed_modules(), cursor_at_start(start, {}).registers(), top_of(start), nullptr,
                reinterpret_cast<std::uintptr_t>(start.ucontext));
  return list_addresses(cursor, part, into);
}

}  // namespace

[[gnu::hot]] std::size_t walk_addresses(const WalkStart& start, WalkPart part, std::span<void*> into) noexcept {
  if (has_listed_modules()) [[unlikely]]
    return with_room([&] { return walk_listed_modules(start, part, into); });
  AddressWalk walk(start, part, into);
  AddressWalk::Stop stop = walk.run_by_table();
  if (stop == AddressWalk::Stop::unknown || !walk.ends_well(stop)) [[unlikely]]
    stop = with_room(place_of(start), [&] { return walk_new_places(walk, start, stop); });
  walk.finish(start, stop);
  return walk.found();
}

}  // namespace jitunwind

/// Where jitunwind_backtrace() and libunwind's unw_backtrace() go on (backtrace_x86_64.S), which may be in another
/// library.
extern "C" [[gnu::visibility("default")]] int jitunwind_backtrace_from(void** addresses, int size, int callers_only,
                                                                       jitunwind::Addr fp, jitunwind::Addr sp,
                                                                       jitunwind::Addr pc) noexcept {
  if (!addresses || size <= 0) return 0;
  const jitunwind::WalkStart start{jitunwind::CodeAddress::returned_to(pc), sp, fp};
  const auto part = callers_only ? jitunwind::WalkPart::callers : jitunwind::WalkPart::whole;
  return static_cast<int>(jitunwind::walk_addresses(start, part, {addresses, static_cast<std::size_t>(size)}));
}
