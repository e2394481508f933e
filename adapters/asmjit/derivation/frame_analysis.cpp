#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"

#include <algorithm>
#include <iterator>

#include "jitunwind/adapters/asmjit/derivation/frame_rows_p.h"
#include "jitunwind/adapters/asmjit/derivation/lost_values_p.h"

namespace jitunwind::derivation {
namespace {

using Kind = Effect::Kind;

/// Control does not continue at the next instruction.
bool ends_run(Kind kind) {
  return kind == Kind::ret || kind == Kind::jump || kind == Kind::jump_elsewhere || kind == Kind::jump_indirect ||
         kind == Kind::trap || kind == Kind::cannot_return;
}

bool names_code(const Effect& e) {
  return e.label != k_no_label && (e.kind == Kind::jump || e.kind == Kind::branch || e.kind == Kind::call ||
                                   e.kind == Kind::address_of || e.kind == Kind::push_code);
}

CodePlace place_of(const TracedInstruction& i) { return {i.section, i.begin}; }

}  // namespace

FrameAnalysis::FrameAnalysis(const CodeTrace& trace, const Arch& arch)
    : trace_(trace), arch_(arch), is_head_(trace.instructions.size()), reached_(trace.instructions.size()) {
  for (const TracedCallSite& site : trace.call_sites) sites_.push_back(&site);
  std::ranges::stable_sort(sites_, {}, [this](const TracedCallSite* site) { return place_of_label(site->begin); });
}

FrameAnalysis::Index FrameAnalysis::index_of(CodePlace place) const {
  const auto found =
      std::ranges::lower_bound(trace_.instructions, place, {}, [](const TracedInstruction& i) { return place_of(i); });
  if (found == trace_.instructions.end() || place_of(*found) != place) return k_nowhere;
  return static_cast<Index>(found - trace_.instructions.begin());
}

FrameAnalysis::Index FrameAnalysis::index_of(LabelId label) const {
  if (label >= trace_.labels.size() || !trace_.labels[label]) return k_nowhere;
  return index_of(*trace_.labels[label]);
}

std::span<const Effect> FrameAnalysis::effects_of(Index i) const {
  const TracedInstruction& instruction = trace_.instructions[i];
  return std::span(trace_.effects).subspan(instruction.first_effect, instruction.effects);
}

bool FrameAnalysis::falls_into(Index i, Index next) const {
  return next < trace_.instructions.size() && trace_.instructions[i].section == trace_.instructions[next].section &&
         trace_.instructions[i].end == trace_.instructions[next].begin;
}

bool FrameAnalysis::is_padding(Index i) const { return trace_.instructions[i].mnemonic == k_padding; }

bool FrameAnalysis::calls(std::size_t i) const {
  const auto effects = effects_of(i);
  return !effects.empty() && effects.back().kind == Kind::call;
}

void FrameAnalysis::refuse(Index i, std::string reason, RegNum lost) {
  if (watcher_) return;
  const TracedInstruction& instruction = trace_.instructions[i];
  refusals_.try_emplace(i, Refused{{place_of(instruction), instruction.mnemonic, std::move(reason), {}}, lost});
}

/// The promise to the caller, at a return and at a jump to another procedure: SP is at the return address, and the
/// registers that the caller relies on have their values.
std::optional<FrameAnalysis::Broken> FrameAnalysis::broken_promise(const FrameState& state) const {
  if (state.memory(state.sp(), 0, arch_.word_size).is_entry(arch_.ra)) return broken_register(state);
  const bool is_there = state.sp() == Value::address(k_cfa_base, arch_.entry_ra);
  return Broken{"with SP = " + value_text(state.sp()) + ", not at the return address", is_there ? arch_.ra : arch_.sp};
}

std::optional<FrameAnalysis::Broken> FrameAnalysis::broken_register(const FrameState& state) const {
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (has(state.preserved(), r) && r != arch_.sp && !state.reg(r).is_entry(r))
      return Broken{std::string("without the caller's value in ") + arch_.by_dwarf(r)->name, r};
  return std::nullopt;
}

void FrameAnalysis::find_heads() {
  const auto mark = [this](Index i) {
    if (i != k_nowhere) is_head_[i] = true;
  };
  for (const Effect& e : trace_.effects)
    if (names_code(e)) mark(index_of(e.label));
  for (const EmbeddedLabel& e : trace_.embedded) mark(index_of(e.label));
  for (const auto& targets : trace_.jump_targets)
    for (const LabelId label : targets) mark(index_of(label));
  for (const TracedCallSite& s : trace_.call_sites) mark(index_of(s.pad));
  for (const ProcedureStart& s : trace_.starts) mark(index_of(s.place));
}

void FrameAnalysis::start(Index i, RegSet preserved) {
  if (preserved == 0)
    for (const ProcedureStart& s : trace_.starts)
      if (s.place == place_of(trace_.instructions[i])) preserved |= s.preserved;
  if (preserved == 0) preserved = abi_preserved(arch_);
  if (!starts_.try_emplace(i, preserved).second) return;
  if (reached_[i]) restart_ = true;
  is_head_[i] = true;
  in_.insert_or_assign(i, FrameState::at_entry(arch_, preserved));
  work_.insert(i);
}

/// Starts again, with all procedure starts found so far.
void FrameAnalysis::restart() {
  restart_ = false;
  in_.clear();
  work_.clear();
  refusals_.clear();
  reached_.assign(reached_.size(), false);
  for (const auto& [i, preserved] : starts_) {
    in_.insert_or_assign(i, FrameState::at_entry(arch_, preserved));
    work_.insert(i);
  }
}

void FrameAnalysis::start_declared() {
  for (const ProcedureStart& s : trace_.starts)
    if (const Index i = index_of(s.place); s.declared && i != k_nowhere) start(i, s.preserved);
  // asmjit gives the address of the first byte to the caller of add().
  if (const Index i = index_of(CodePlace{0, 0}); i != k_nowhere) start(i, 0);
  for (const Effect& e : trace_.effects)
    if (const Index i = e.kind == Kind::call ? index_of(e.label) : k_nowhere; i != k_nowhere) start(i, 0);
}

/// Follows the next start that is only a hint. True when there was one.
bool FrameAnalysis::start_hinted() {
  for (const ProcedureStart& s : trace_.starts) {
    const Index i = index_of(s.place);
    if (i == k_nowhere || reached_[i]) continue;
    start(i, s.preserved);
    return true;
  }
  return false;
}

void FrameAnalysis::solve() {
  while (!work_.empty()) {
    const Index head = *work_.begin();
    work_.erase(work_.begin());
    follow_run(head);
  }
}

/// Applies an instruction's effects, without control flow.
bool FrameAnalysis::execute(Index i, FrameState& state, std::string& why) {
  const BaseId id = base_made_by(i);
  for (const Effect& e : effects_of(i)) {
    if (e.kind != Kind::call) {
      if (!state.apply(e, id, why)) return false;
      continue;
    }
    Effect call = e;
    if (call.label == k_no_label && call.reg != k_no_reg && state.reg(call.reg).kind == Value::Kind::code)
      call.label = state.reg(call.reg).base;
    if (const Index callee = index_of(call.label); callee != k_nowhere) {
      start(callee, 0);
      call.value = popped_by(call.label);
    }
    if (!state.apply(call, id, why)) return false;
  }
  return true;
}

/// cmp rsp,r11; jne: the register that equals SP on the side of the branch with this condition, or no register.
RegNum FrameAnalysis::equal_to_sp(Index branch, Effect::Condition condition) const {
  const auto effects = effects_of(branch);
  const bool tells = !effects.empty() && effects.back().kind == Kind::branch && effects.back().value == condition;
  if (!tells || branch == 0 || is_head_[branch] || !falls_into(branch - 1, branch)) return k_no_reg;
  const auto before = effects_of(branch - 1);
  return !before.empty() && before.back().kind == Kind::compare ? before.back().base : k_no_reg;
}

void FrameAnalysis::follow_run(Index head) {
  FrameState state = in_.at(head);
  if (watcher_) watcher_->begins(head, state);
  Index last = head;  // the last instruction that is no padding
  for (Index i = head;; ++i) {
    reached_[i] = true;
    if (!is_padding(i)) last = i;
    std::string why;
    if (!sites_.empty() && calls(i)) land(i, state);
    if (!execute(i, state, why)) return refuse(i, why);
    if (watcher_) watcher_->executed(i, state);
    const auto effects = effects_of(i);
    if (!effects.empty() && !leave(i, effects.back(), state)) return;
    if (const RegNum equal = equal_to_sp(i, Effect::different); equal != k_no_reg) state.equate_sp(equal);
    if (!falls_into(i, i + 1)) {
      // A call before data does not return, because there is no code to return to.
      if (!calls(last)) refuse(last, "goes on into bytes that are no instruction");
      return;
    }
    // A call before another procedure does not return either.
    if (starts_.contains(i + 1) && calls(last)) return;
    if (is_head_[i + 1]) return flow(last, i + 1, state);
  }
}

void FrameAnalysis::flow(Index from, Index to, const FrameState& state) {
  if (watcher_) return watcher_->flows(to, state);
  if (starts_.contains(to)) {
    if (const auto broken = broken_promise(state)) refuse(from, "goes on into another procedure ", *broken);
    return;
  }
  std::string why;
  const auto [known, fresh] = in_.try_emplace(to, state);
  bool changed = fresh;
  if (!fresh && !known->second.merge(state, base_joined_at(to), changed, why)) return refuse(to, why);
  if (changed) work_.insert(to);
}

/// The path of an exception that leaves the call; values in scratch registers do not survive. Overlapping call sites
/// are refused later.
void FrameAnalysis::land(Index call, FrameState state) {
  const CodePlace at = place_of(trace_.instructions[call]);
  const auto behind = std::ranges::upper_bound(
      sites_, at, {}, [this](const TracedCallSite* site) { return place_of_label(site->begin); });
  if (behind == sites_.begin()) return;
  const TracedCallSite& site = **std::prev(behind);
  if (site.pad == k_no_label || at >= place_of_label(site.end)) return;
  state.forget_what_callees_use();
  flow_to_label(call, site.pad, state);
}

void FrameAnalysis::flow_to_label(Index from, LabelId to, const FrameState& state) {
  if (const Index target = index_of(to); target != k_nowhere)
    flow(from, target, state);
  else
    refuse(from, "jumps to a label that is not bound to an instruction");
}

/// Control flow of an instruction's last effect. True: control continues at the next instruction.
bool FrameAnalysis::leave(Index i, const Effect& e, const FrameState& state) {
  switch (e.kind) {
    case Kind::ret: {
      const Value to = state.memory(state.sp(), 0, arch_.word_size);
      if (to.kind == Value::Kind::code) {
        FrameState behind = state;
        behind.raise_sp(std::int64_t{arch_.word_size} + e.value);
        flow_to_label(i, to.base, behind);
      } else if (const auto broken = broken_promise(state)) {
        refuse(i, "returns ", *broken);
      }
      break;
    }
    case Kind::jump:
      flow_to_label(i, e.label, state);
      break;
    case Kind::branch:
      if (const RegNum equal = equal_to_sp(i, Effect::equal); equal != k_no_reg) {
        FrameState there = state;
        there.equate_sp(equal);
        flow_to_label(i, e.label, there);
      } else {
        flow_to_label(i, e.label, state);
      }
      break;
    case Kind::jump_indirect:
      leave_indirectly(i, e, state);
      break;
    default:
      break;
  }
  return !ends_run(e.kind);
}

void FrameAnalysis::leave_indirectly(Index i, const Effect& e, const FrameState& state) {
  const Value target = e.reg == k_no_reg ? Value{} : state.reg(e.reg);
  if (target.kind == Value::Kind::code) return flow_to_label(i, target.base, state);
  if (target.is_entry(arch_.ra)) {
    // pop rcx; jmp rcx
    if (!state.sp().is_cfa_address() || state.sp().offset < 0)
      refuse(i, "returns with SP = " + value_text(state.sp()) + ", below the caller's frame");
    else if (const auto broken = broken_register(state))
      refuse(i, "returns ", *broken);
    return;
  }
  const std::vector<LabelId> targets = targets_of(i, e);
  for (const LabelId label : targets)  // addresses of data may follow a table
    if (has_targets(e) || index_of(label) != k_nowhere) flow_to_label(i, label, state);
  // The remaining case counts as a jump to another procedure; its target is unknown, and may be in this one.
  if (!targets.empty() || has_targets(e)) return;
  if (const auto broken = broken_promise(state)) refuse(i, "jumps to an unknown address ", *broken);
}

/// The generator declared the targets of the jump.
bool FrameAnalysis::has_targets(const Effect& e) const {
  return e.value >= 0 && static_cast<std::size_t>(e.value) < trace_.jump_targets.size();
}

std::vector<LabelId> FrameAnalysis::targets_of(Index jump, const Effect& e) const {
  if (has_targets(e)) return trace_.jump_targets[static_cast<std::size_t>(e.value)];
  if (e.label < trace_.labels.size() && trace_.labels[e.label]) return table_at(*trace_.labels[e.label]);
  return tables_near(jump);
}

/// The consecutive label addresses in data from `place` on.
std::vector<LabelId> FrameAnalysis::table_at(CodePlace place) const {
  std::vector<LabelId> targets;
  auto entry = std::ranges::find(trace_.embedded, place, &EmbeddedLabel::place);
  for (std::uint32_t size = 0; entry != trace_.embedded.end() && entry->place.section == place.section; ++entry) {
    const std::uint32_t distance = entry->place.offset - place.offset;
    if (targets.size() == 1) size = distance;
    if (!targets.empty() && distance != size * targets.size()) break;
    targets.push_back(entry->label);
  }
  return targets;
}

/// The labels, in any table, that are bound in the procedure of the jump.
std::vector<LabelId> FrameAnalysis::tables_near(Index jump) const {
  const auto next = starts_.upper_bound(jump);
  const Index last = next == starts_.end() ? trace_.instructions.size() : next->first;
  const Index first = next == starts_.begin() ? 0 : std::prev(next)->first;
  std::vector<LabelId> targets;
  for (const EmbeddedLabel& e : trace_.embedded)
    if (const Index to = index_of(e.label); to != k_nowhere && to >= first && to < last) targets.push_back(e.label);
  return targets;
}

/// Bytes popped by the ret instructions that a call of the label can end in; 0 if there are none.
std::int64_t FrameAnalysis::popped_by(LabelId callee) {
  const auto [known, fresh] = popped_.try_emplace(callee, 0);
  if (!fresh) return known->second;
  std::set<Index> seen, work{index_of(callee)};
  std::optional<std::int64_t> popped;
  while (!work.empty()) {
    const Index i = *work.begin();
    work.erase(work.begin());
    if (i >= trace_.instructions.size() || !seen.insert(i).second) continue;
    const auto effects = effects_of(i);
    const Kind last = effects.empty() ? Kind::clobber : effects.back().kind;
    if (last == Kind::ret) {
      if (popped && *popped != effects.back().value) refuse(i, "returns popping other arguments than another ret does");
      popped = effects.back().value;
    }
    if (last == Kind::jump || last == Kind::branch) work.insert(index_of(effects.back().label));
    if (!ends_run(last) && falls_into(i, i + 1)) work.insert(i + 1);
  }
  return popped_[callee] = popped.value_or(0);
}

void FrameAnalysis::run() {
  find_heads();
  start_declared();
  do {
    solve();
    if (restart_) restart();
  } while (!work_.empty() || start_hinted());
  cut_procedures();
}

void FrameAnalysis::cut_procedures() {
  std::set<Index> cuts, unreached = unreached_labels();
  for (const auto& [i, preserved] : starts_) cuts.insert(i);
  for (Index i = 0; i < trace_.instructions.size(); ++i)
    if (i == 0 || trace_.instructions[i].section != trace_.instructions[i - 1].section) cuts.insert(i);
  for (auto first = cuts.begin(); first != cuts.end(); ++first) {
    const auto next = std::next(first);
    TracedProcedure procedure = cut(*first, next == cuts.end() ? trace_.instructions.size() : *next);
    if (procedure.first == procedure.last) continue;
    if (!reached_[procedure.first]) unreached.insert(procedure.first);
    const auto refusal = refusals_.lower_bound(procedure.first);
    const auto strange = unreached.lower_bound(procedure.first);
    if (refusal != refusals_.end() && refusal->first < procedure.last)
      explain(refusal->first, refusal->second.lost, procedure.refusal.emplace(refusal->second.refusal));
    else if (strange != unreached.end() && *strange < procedure.last)
      procedure.refusal = Refusal{place_of(trace_.instructions[*strange]),
                                  trace_.instructions[*strange].mnemonic,
                                  "is reached by nothing that was seen: name its label if a procedure begins here",
                                  {}};
    procedures_.push_back(std::move(procedure));
  }
}

TracedProcedure FrameAnalysis::cut(Index first, Index last) const {
  while (last > first && is_padding(last - 1) && !reached_[last - 1]) --last;
  TracedProcedure procedure;
  procedure.first = first;
  procedure.last = last;
  if (first == last) return procedure;
  procedure.section = trace_.instructions[first].section;
  procedure.begin = trace_.instructions[first].begin;
  procedure.end = trace_.instructions[last - 1].end;
  for (const ProcedureStart& s : trace_.starts)
    if (s.place == CodePlace{procedure.section, procedure.begin} && !s.name.empty()) procedure.name = s.name;
  return procedure;
}

/// Code that no path leads to is dead, unless code outside can enter it: at a label that others may use, or at the
/// first byte of its section. The state at such an entry is unknown. A label that only dead code uses is not for
/// others.
std::set<FrameAnalysis::Index> FrameAnalysis::unreached_labels() const {
  std::set<LabelId> jumped_to(trace_.internal.begin(), trace_.internal.end());
  for (const TracedCallSite& site : trace_.call_sites) jumped_to.insert({site.begin, site.end});
  for (const Effect& e : trace_.effects)
    if (e.kind == Kind::jump || e.kind == Kind::branch) jumped_to.insert(e.label);
  std::set<Index> unreached;
  for (LabelId label = 0; label < trace_.labels.size(); ++label)
    if (const Index i = index_of(label); i != k_nowhere && !reached_[i] && !jumped_to.contains(label))
      unreached.insert(i);
  return unreached;
}

FrameAnalysis::~FrameAnalysis() = default;

void FrameAnalysis::watch(std::size_t head, PathWatcher& watcher) {
  watcher_ = &watcher;
  follow_run(head);
  watcher_ = nullptr;
}

std::optional<std::size_t> FrameAnalysis::head_of(std::size_t instruction) const {
  const auto behind = in_.upper_bound(instruction);
  if (behind == in_.begin()) return std::nullopt;
  return std::prev(behind)->first;
}

const FrameState* FrameAnalysis::state_at_head(std::size_t head) const {
  const auto found = in_.find(head);
  return found == in_.end() ? nullptr : &found->second;
}

std::vector<std::size_t> FrameAnalysis::starts() const {
  std::vector<std::size_t> all;
  for (const auto& [i, preserved] : starts_) all.push_back(i);
  return all;
}

LostValues& FrameAnalysis::lost_values() {
  if (!lost_) lost_ = std::make_unique<LostValues>(*this);
  return *lost_;
}

Refusal::Cause FrameAnalysis::cause(Index i, std::string deed) const {
  return {place_of(trace_.instructions[i]), trace_.instructions[i].mnemonic, std::move(deed)};
}

/// Explains a missing value before instruction i by the instructions on the paths that lead there.
void FrameAnalysis::explain(Index i, RegNum lost, Refusal& refusal) {
  if (lost == k_no_reg) return;
  const LostValue how = lost_values().find(i, lost);
  const std::optional<FrameState>& state = lost_values().state();
  if (!state) return;
  const bool is_held = how.lost == LostValue::k_nowhere && lost != arch_.ra && lost != arch_.sp;
  if (is_held) refusal.reason += ", which is in " + place_text(*state, arch_, lost);
  refusal.causes = causes_of(how, lost, *state);
}

std::vector<Refusal::Cause> FrameAnalysis::causes_of(const LostValue& how, RegNum lost, const FrameState& state) const {
  std::vector<Refusal::Cause> causes;
  if (lost == arch_.sp) {
    const BaseId base = state.sp().base;
    const char* const deed = (base & k_join) != 0 ? "is reached with SPs that differ" : "moved SP by an unknown amount";
    if (base != k_cfa_base) causes.push_back(cause(maker_of(base), deed));
    return causes;
  }
  const bool gone = how.lost != LostValue::k_nowhere;
  const bool at_once = gone && how.lost == how.changed && !how.lost_by_meeting;
  const bool was_copied = at_once && how.copies_end != LostValue::k_nowhere;
  if (was_copied)
    causes.push_back(cause(how.copies_end, how.some_had_none
                                               ? "is reached from paths of which some had not saved it"
                                               : "is reached from paths that saved it in different places"));
  if (how.changed != LostValue::k_nowhere)
    causes.push_back(cause(how.changed, was_copied ? "overwrote it"
                                        : at_once  ? "overwrote it, which was saved nowhere"
                                                   : "changed it"));
  if (gone && !at_once)
    causes.push_back(cause(how.lost, how.lost_by_meeting ? "is reached from paths that keep it in different places"
                                     : lost == arch_.ra  ? "overwrote it"
                                                         : "lost the last copy of it"));
  return causes;
}

/// The instruction to blame is the one that lost the value, or the one at which paths merge.
Refusal FrameAnalysis::lost_at(const Boundary& at, RegNum reg, std::string reason) {
  const Index i = at.instruction;
  LostValue how = lost_values().find(i, reg);
  // The call itself loses values that callees may overwrite.
  const bool by_call = calls(i) && how.lost == LostValue::k_nowhere && at.state->reg(reg).kind == Value::Kind::unknown;
  if (by_call && reg != arch_.sp) how.lost = i;
  Index blamed = is_head_[i] || i == 0 ? i : i - 1;
  if (reg != arch_.sp && how.lost != LostValue::k_nowhere) blamed = how.lost;
  const std::string name = arch_.by_dwarf(reg) ? arch_.by_dwarf(reg)->name : "?";
  if (reason.empty() && how.lost_by_meeting)
    reason = "is reached from paths that keep the caller's " + name + " in different places";
  else if (reason.empty() && how.lost == how.changed && how.copies_end != LostValue::k_nowhere)
    reason = name + " was overwritten where no copy of it is at one place";
  else if (reason.empty() && how.lost == how.changed)
    reason = name + " was overwritten before it was saved";
  else if (reason.empty())
    reason = "the last copy of the caller's " + name + " is lost";
  Refusal refusal{place_of(trace_.instructions[blamed]), trace_.instructions[blamed].mnemonic, std::move(reason), {}};
  if (const auto& state = lost_values().state()) refusal.causes = causes_of(how, reg, *state);
  std::erase_if(refusal.causes, [&](const Refusal::Cause& c) { return c.place == refusal.place; });
  return refusal;
}

bool FrameAnalysis::visit(const TracedProcedure& procedure, const Visitor& visitor) {
  std::optional<FrameState> state;
  bool changed = true;
  for (Index i = procedure.first; i < procedure.last; ++i) {
    if (const auto known = is_head_[i] ? in_.find(i) : in_.end(); known != in_.end()) {
      changed |= !state || !state->same_as(known->second);
      if (changed) state = known->second;
    }
    if (!reached_[i]) state.reset();
    changed |= !state;
    if (!visitor({i, state ? &*state : nullptr, changed})) return false;
    if (!state) continue;
    const std::uint64_t before = state->changes();
    std::string why;
    if (!execute(i, *state, why)) state.reset();
    const RegNum equal = equal_to_sp(i, Effect::different);
    if (state && equal != k_no_reg) state->equate_sp(equal);
    changed = !state || state->changes() != before;
  }
  return true;
}

}  // namespace jitunwind::derivation
