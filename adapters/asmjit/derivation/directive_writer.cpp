#include "jitunwind/adapters/asmjit/derivation/directive_writer_p.h"

#include <algorithm>

namespace jitunwind::derivation {
namespace {

using Kind = RegRule::Kind;

/// A preserved register without a rule has the rule "same".
RegRule normal(const RegRule& rule) { return rule.kind == Kind::unspecified ? RegRule::same() : rule; }

}  // namespace

DirectiveWriter::DirectiveWriter(const Arch& arch) : arch_(arch) {
  machine_.sp = arch.entry_cfa;
  machine_.put(arch.ra, RegRule::at_cfa(arch.entry_ra));
}

bool DirectiveWriter::balanced() const noexcept { return machine_.sp == arch_.entry_cfa; }

std::vector<DirectiveWriter::Placed> DirectiveWriter::take() {
  // The label of the state at the start was inserted last; the stable sort moves it to its place.
  std::ranges::stable_sort(placed_, {}, &Placed::offset);
  return std::move(placed_);
}

bool DirectiveWriter::add(const FrameStep& step) {
  const Machine before = machine_;
  group_.clear();
  raises_sp_ = false;
  const bool said = diff(step);
  // The state after a jump or return is often that of an earlier place; a copy of it is shorter.
  if (!said || group_.size() > 2) {
    const Machine after = machine_;
    machine_ = before;
    if (!copy(step)) {
      if (!said) return false;
      machine_ = after;
    }
  }
  if (step.offset == 0 && !group_.empty()) return false;  // not a procedure's state at entry
  for (const DraftDirective& d : group_) placed_.push_back({d, step.offset, step.instruction, raises_sp_});
  const std::pair state{step.row, step.sp};
  if (!known_.contains(state)) known_.emplace(state, Known{step.offset, step.instruction, machine_, std::nullopt});
  return true;
}

bool DirectiveWriter::copy(const FrameStep& step) {
  const auto same = known_.find({step.row, step.sp});
  if (same == known_.end()) return false;
  Known& known = same->second;
  if (!known.label) {
    known.label = ++labels_;
    placed_.push_back(
        {DraftDirective::label_state(static_cast<unw_word_t>(labels_)), known.offset, known.instruction, false});
  }
  group_.assign(1, DraftDirective::copy_state(static_cast<unw_word_t>(*known.label)));
  raises_sp_ = false;
  machine_ = known.machine;
  return true;
}

bool DirectiveWriter::diff(const FrameStep& step) { return move_sp(step) && change_cfa(step) && change_rules(step); }

/// Deallocation rule: slots between the old and the new SP are released, and their registers hold the caller's values.
void DirectiveWriter::release(std::optional<std::int64_t> old) {
  for (RegSet left = machine_.ruled; left != 0; left &= left - 1) {
    const RegNum r = first_of(left);
    const RegRule& rule = machine_.rules[r];
    const bool at_old_sp = rule.kind == Kind::at_reg;
    const bool released = rule.kind == Kind::at_cfa && rule.offset < -*machine_.sp && (!old || rule.offset >= -*old);
    if (r == arch_.ra || (!released && !at_old_sp)) continue;
    machine_.rules[r] = RegRule{};
    machine_.ruled &= ~set_of(r);
    if (r == machine_.fp) machine_.fp = k_no_reg;
  }
}

bool DirectiveWriter::move_sp(const FrameStep& step) {
  const auto old = machine_.sp;
  const auto add = [this](std::int64_t by) {
    if (by != 0) say(DraftDirective::add(arch_.sp, by));
  };
  if (!step.sp.is_cfa_address()) {
    if (!machine_.sp && machine_.base == step.sp.base) {
      add(step.sp.offset - machine_.base_offset);
    } else {
      const bool sp_relative = std::ranges::count(machine_.rules, Kind::at_reg, &RegRule::kind) != 0;
      if (machine_.has_slot || sp_relative) return false;
      say(DraftDirective::add(arch_.sp, k_unknown_distance));
      machine_.sp.reset();
      machine_.base = step.sp.base;
    }
    machine_.base_offset = step.sp.offset;
    return true;
  }
  const std::int64_t target = -step.sp.offset;
  std::int64_t from = target;
  if (machine_.sp) {
    from = *machine_.sp;
  } else if (machine_.fp != k_no_reg) {
    say(DraftDirective::save_reg(machine_.fp, arch_.sp));
    from = machine_.fp_offset;
    if (!arch_.by_dwarf(machine_.fp)->preserved) machine_.fp = k_no_reg;
  } else if (machine_.has_slot) {
    say(DraftDirective::save_reg(arch_.sp, arch_.sp));
    from = machine_.slot_offset;
    machine_.has_slot = false;
  } else {
    return false;
  }
  add(from - target);
  machine_.sp = target;
  raises_sp_ = !old || target < *old;
  if (raises_sp_) release(old);
  return true;
}

bool DirectiveWriter::change_cfa(const FrameStep& step) {
  const CfaRule& cfa = step.row->cfa;
  Machine& m = machine_;
  if (cfa.kind == CfaRule::Kind::deref) {
    const std::int64_t place = m.base_offset + cfa.offset;
    if (m.has_slot && m.slot == place && m.slot_offset == cfa.add) return true;
    const std::int64_t copied = m.fp != k_no_reg ? m.fp_offset : m.sp.value_or(cfa.add + 1);
    if (cfa.reg != arch_.sp || m.has_slot || copied != cfa.add) return false;
    say(DraftDirective::spill_sp_rel(arch_.sp, cfa.offset));
    m.has_slot = true;
    m.slot = place;
    m.slot_offset = cfa.add;
    m.fp = k_no_reg;
    return true;
  }
  if (cfa.kind != CfaRule::Kind::offset || m.has_slot) return false;
  if (cfa.reg == arch_.sp) return m.fp == k_no_reg && m.sp == cfa.offset;
  if (m.fp == cfa.reg) return m.fp_offset == cfa.offset;
  const bool saved = normal(step.row->rule(cfa.reg)).kind != Kind::same;
  if (m.fp != k_no_reg || !m.sp || (arch_.by_dwarf(cfa.reg)->preserved && !saved)) return false;
  say(DraftDirective::save_reg(arch_.sp, cfa.reg));
  if (*m.sp != cfa.offset) say(DraftDirective::add(cfa.reg, *m.sp - cfa.offset));
  m.fp = cfa.reg;
  m.fp_offset = cfa.offset;
  return true;
}

bool DirectiveWriter::change_rules(const FrameStep& step) {
  const auto entries = step.row->entries();
  if (!entries.empty() && entries.back().reg >= machine_.rules.size()) return false;
  RegSet concerned = machine_.ruled;
  for (const FrameRow::Entry& e : entries) concerned |= set_of(e.reg);
  auto entry = entries.begin();
  for (RegSet left = concerned; left != 0; left &= left - 1) {
    const RegNum r = first_of(left);
    const bool mentioned = entry != entries.end() && entry->reg == r;
    const RegRule wanted = mentioned ? (entry++)->rule : RegRule{};
    if (r != arch_.sp && !change_rule(r, wanted)) return false;
  }
  return true;
}

bool DirectiveWriter::change_rule(RegNum reg, const RegRule& wanted) {
  Machine& m = machine_;
  RegRule& have = m.rules[reg];
  // While SP is unknown, a slot is recorded by its distance to the base.
  RegRule kept = wanted;
  if (kept.kind == Kind::at_reg) kept.offset += m.base_offset;
  if (have == kept) return true;
  const bool preserved = arch_.by_dwarf(reg)->preserved;
  if (preserved && normal(have) == normal(kept)) return true;
  switch (wanted.kind) {
    case Kind::at_cfa:
      if (m.sp)
        say(DraftDirective::spill_sp_rel(reg, wanted.offset + *m.sp));
      else if (m.fp != k_no_reg)
        say(DraftDirective::spill_fp_rel(reg, wanted.offset + m.fp_offset));
      else
        return false;
      break;
    case Kind::at_reg:
      if (m.sp || wanted.reg != arch_.sp) return false;
      say(DraftDirective::spill_sp_rel(reg, wanted.offset));
      break;
    case Kind::in_reg:
      if (reg == m.fp) return false;
      say(DraftDirective::save_reg(reg, wanted.reg));
      break;
    case Kind::unspecified:
    case Kind::same:
      if (!preserved || reg == m.fp) return false;
      say(DraftDirective::save_reg(reg, reg));
      break;
    default:
      return false;
  }
  m.put(reg, kept);
  return true;
}

}  // namespace jitunwind::derivation
