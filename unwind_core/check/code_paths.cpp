#include "jitunwind/unwind_core/check/code_paths_p.h"

#include <algorithm>

#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind::check_code {
namespace {

using Effect = MachineInstruction::Effect;

/// Whether an instruction may change what a row speaks of. Registers that calls preserve may be restored by a load.
bool changes(const MachineInstruction& i, const RowClaims& row, const CodeValues& values,
             const Machine& machine) noexcept {
  const auto bit = [&](RegNum reg) {
    const Place place = machine.place(reg);
    return place == k_no_place ? 0 : std::uint32_t{1} << place;
  };
  const bool is_move = i.effect == Effect::set || (i.effect == Effect::load && i.step == 0 && i.second == k_no_reg);
  const bool is_idle = i.effect == Effect::none || i.effect == Effect::branch || i.effect == Effect::compare ||
                       i.effect == Effect::number || (i.effect == Effect::store && i.step == 0 && !values.has_stored());
  if (is_move) return ((i.written | bit(i.reg)) & (row.uses | machine.preserved)) != 0;
  return !is_idle || (i.written & row.uses) != 0;
}

/// Each instruction is followed some times at most.
constexpr std::uint64_t k_most_visits = 32;

}  // namespace

CodePaths::CodePaths(const Machine& machine, AddrRange code, std::span<const std::byte> bytes, const ClaimedRows& rows)
    : machine_(machine),
      code_(code),
      bytes_(bytes),
      rows_(rows),
      shapes_(bytes.size()),
      verdicts_(bytes.size(), k_unseen),
      head_at_(bytes.size(), k_no_head),
      read_at_(bytes.size() < 0xffff ? bytes.size() : 0),
      steps_left_(k_most_visits * bytes.size() + 64) {}

MachineInstruction CodePaths::read(std::uint32_t offset) const noexcept {
  if (offset < read_at_.size() && read_at_[offset] != 0) return read_[read_at_[offset] - 1u];
  return machine_.arch.read_instruction(bytes_.subspan(offset), code_.begin + offset);
}

/// Finds the targets of direct jumps, in one pass. Code that follows data may be misread: its targets become heads when
/// a path meets the jump.
void CodePaths::find_heads() {
  const std::uint32_t unit = machine_.arch.unit;
  constexpr std::size_t k_bytes_of_most = 4;  // of an instruction
  read_.reserve(read_at_.size() / k_bytes_of_most);
  for (std::uint32_t at = 0; at < bytes_.size();) {
    const MachineInstruction i = read(at);
    if (at < read_at_.size()) {
      read_.push_back(i);
      read_at_[at] = static_cast<std::uint16_t>(read_.size());
    }
    if (i.length == 0) {
      at += unit;
      continue;
    }
    shapes_[at] |= static_cast<std::uint8_t>(i.length | (i.pads ? k_pads : 0));
    const bool jumps = i.effect == Effect::branch || i.effect == Effect::jump;
    if (jumps && i.target != 0 && code_.contains(i.target)) {
      const auto target = static_cast<std::uint32_t>(i.target - code_.begin);
      if (target < shapes_.size()) shapes_[target] |= k_is_head;
    }
    at += i.length;
  }
}

void CodePaths::note(std::uint32_t offset, Judgement judgement, bool is_assumed) {
  if (is_assumed && judgement.verdict == Verdict::disagrees)
    judgement = {Verdict::cannot_tell, unreached_, judgement.reg};
  std::uint8_t& known = verdicts_[offset];
  const auto verdict = static_cast<std::uint8_t>(judgement.verdict);
  if (known != k_unseen && known >= verdict) return;
  known = verdict;
  if (judgement.verdict != Verdict::agrees) notes_.push_back({offset, judgement});
}

void CodePaths::add_head(std::uint32_t offset, const CodeValues& values, bool is_assumed) {
  std::uint32_t& index = head_at_[offset];
  if (index == k_no_head) {
    index = static_cast<std::uint32_t>(heads_.size());
    heads_.push_back({offset, is_assumed, true, values});
    waiting_.push_back(index);
    return;
  }
  Head& head = heads_[index];
  if (!head.values.merge(values) || head.waits) return;
  head.waits = true;
  waiting_.push_back(index);
}

/// Code that follows a call directly, with a row of its own, is that of other paths: the call does not return.
bool CodePaths::ends_in_call(const Path& path, std::uint32_t row, const Judgement& judgement) const noexcept {
  return path.called != k_no_head && judgement.verdict != Verdict::agrees && !rows_.are_equal(path.called, row);
}

/// Callees may pop arguments. A row that finds the CFA by SP tells how many.
void CodePaths::settle(Path& path, const RowClaims& row) noexcept {
  if (!path.values.may_have_popped() || row.cfa != RowClaims::Cfa::offset || row.cfa_base != machine_.sp) return;
  if (!path.values.pop_up_to(-row.cfa_offset, machine_)) return;
  assumed_ += judges_;
  path.judged_row = k_no_head;
}

const Judgement& CodePaths::judge(Path& path, std::uint32_t row) const noexcept {
  if (path.judged_row != row) path.judgement = rows_.judge(rows_[row], path.values);
  path.judged_row = row;
  return path.judgement;
}

/// Goes to a head, whose row must hold for every path that leads there. Assumed values prove nothing of code that was
/// judged before.
void CodePaths::flow(Path& path, std::uint32_t to) {
  if (path.is_assumed && head_at_[to] < judged_) return;
  const std::uint32_t row = rows_.index_at(to);
  settle(path, rows_[row]);
  if (!judges_ && path.called == k_no_head) return add_head(to, path.values, path.is_assumed);
  const Judgement& judgement = judge(path, row);
  if (ends_in_call(path, row, judgement)) return;
  if (judges_)
    note(to, judgement, path.is_assumed);
  else
    add_head(to, path.values, path.is_assumed);
}

void CodePaths::jump(Path& path, const MachineInstruction& i) {
  if (i.target == 0) {
    if (i.effect == Effect::jump) unreached_ = CannotTell::indirect_jump, keep_candidate(path.values);
    return;
  }
  if (!code_.contains(i.target)) return;
  const auto target = static_cast<std::uint32_t>(i.target - code_.begin);
  if (target >= bytes_.size()) return;
  path.called = k_no_head;  // the jump is no padding
  const bool tells_sp = i.condition == MachineInstruction::If::equal && path.equal != k_no_reg;
  if (!tells_sp && !path.values.may_have_popped()) return flow(path, target);
  Path there = path;
  if (tells_sp) there.values.equate_sp(path.equal, machine_), there.judged_row = k_no_head;
  flow(there, target);
}

/// The states in which calls return, which are also those at landing pads, and the states of indirect jumps.
void CodePaths::keep_candidate(const CodeValues& values) {
  constexpr std::size_t k_most = 16;
  const auto is_same = [&](const CodeValues& known) { return known.same_frame_as(values, machine_); };
  if (candidates_.size() < k_most && std::ranges::none_of(candidates_, is_same)) candidates_.push_back(values);
}

/// Judges and passes one instruction. False: the path ends.
bool CodePaths::step(Path& path) {
  const std::uint32_t at = path.at;
  const RowClaims& current = rows_[row_];
  if (at < current.begin || at >= current.end) row_ = rows_.index_at(at);
  settle(path, rows_[row_]);
  if (judges_ || path.called != k_no_head) {
    const Judgement& judgement = judge(path, row_);
    if (ends_in_call(path, row_, judgement)) return false;
    if (judges_) note(at, judgement, path.is_assumed);
  }
  const MachineInstruction i = read(at);
  if (i.length == 0) {
    if (at < bytes_.size()) unreached_ = CannotTell::unknown_instruction;
    return false;
  }
  may_overlap_ |= length_at(at) == 0;
  shapes_[at] = static_cast<std::uint8_t>((shapes_[at] & ~k_length) | i.length);
  if (i.effect == Effect::unknown) unreached_ = CannotTell::unknown_instruction;
  if (i.effect == Effect::ret && judges_ && path.values.returns_elsewhere(machine_))
    note(at, {Verdict::disagrees, CannotTell::none, machine_.arch.sp, path.values.reg(machine_.sp)}, path.is_assumed);
  path.values.apply(i, machine_, at);
  if (changes(i, rows_[row_], path.values, machine_)) path.judged_row = k_no_head;
  if (i.effect == Effect::branch || i.effect == Effect::jump) jump(path, i);
  if (i.condition == MachineInstruction::If::different && path.equal != k_no_reg)
    path.values.equate_sp(path.equal, machine_), path.judged_row = k_no_head;
  path.equal = i.effect != Effect::compare ? k_no_reg : i.reg == machine_.arch.sp ? i.base : i.reg;
  if (i.reg != machine_.arch.sp && i.base != machine_.arch.sp) path.equal = k_no_reg;
  if (i.effect == Effect::call) keep_candidate(path.values), path.called = row_;
  if (i.effect != Effect::call && !i.pads) path.called = k_no_head;
  path.at = at + i.length;
  return i.goes_on();
}

void CodePaths::follow(std::uint32_t index) {
  heads_[index].waits = false;
  Path path{heads_[index].offset, heads_[index].values, heads_[index].is_assumed};
  if (path.at == 0) path.called = 0;  // gcc puts a nop in front of a landing pad that begins a part
  for (; steps_left_ != 0; --steps_left_) {
    if (!step(path) || path.at >= bytes_.size()) return;
    if ((shapes_[path.at] & k_is_head) != 0 || head_at_[path.at] != k_no_head) return flow(path, path.at);
  }
  note(path.at, {Verdict::cannot_tell, CannotTell::too_long}, false);
}

/// Judges only when all states are final: before that, a loop may have been left in another turn than it ever is.
void CodePaths::work() {
  while (!waiting_.empty()) {
    const std::uint32_t head = waiting_.back();
    waiting_.pop_back();
    follow(head);
  }
  judges_ = true;
  for (; judged_ < heads_.size(); ++judged_) follow(judged_);
  judges_ = false;
}

/// Takes the state of a call or of an indirect jump whose frame is that of the row, else the row itself.
void CodePaths::assume(std::uint32_t offset) {
  const RowClaims& row = rows_[rows_.index_at(offset)];
  ++assumed_;
  bool has_one = false;
  CodeValues values = CodeValues::none();
  for (const CodeValues& candidate : candidates_) {
    if (rows_.judge(row, candidate).verdict != Verdict::agrees) continue;
    if (has_one)
      values.merge(candidate);
    else
      values = candidate;
    has_one = true;
  }
  if (!has_one) {
    values = rows_.values_of(row);
    note(offset, {Verdict::cannot_tell, row.why != CannotTell::none ? row.why : unreached_}, true);
  }
  add_head(offset, values, true);
}

void CodePaths::assume_unreached() {
  for (std::uint32_t at = 0; at < bytes_.size();) {
    if (verdicts_[at] == k_unseen) {
      const MachineInstruction i = read(at);
      if (i.pads) {
        at += i.length;
        continue;
      }
      if (i.length == 0) {
        note(at, {Verdict::cannot_tell, CannotTell::unknown_instruction}, true);
        at += machine_.arch.unit;
        continue;
      }
      assume(at);
      work();
    }
    at += std::max<std::uint32_t>(length_at(at), machine_.arch.unit);
  }
}

/// Code in which an instruction begins in the middle of another one is read in two ways. Code that jumps behind a
/// prefix, as the C library jumps over `lock`, is not meant.
void CodePaths::note_overlaps() {
  if (!may_overlap_) return;
  std::uint32_t end = 0;
  for (std::uint32_t at = 0; at < bytes_.size(); ++at) {
    if (verdicts_[at] == k_unseen) continue;
    const std::uint32_t its_end = at + length_at(at);
    if (at < end && its_end != end) {
      verdicts_[at] = static_cast<std::uint8_t>(Verdict::cannot_tell);
      notes_.push_back({at, {Verdict::cannot_tell, CannotTell::inside_instruction}});
    }
    end = std::max(end, its_end);
  }
}

std::uint32_t CodePaths::judged_end() const noexcept {
  auto last = static_cast<std::uint32_t>(verdicts_.size());
  while (last != 0 && verdicts_[last - 1] == k_unseen) --last;
  return last == 0 ? 0 : last - 1 + std::max<std::uint32_t>(length_at(last - 1), machine_.arch.unit);
}

void CodePaths::follow_all() {
  find_heads();
  if (bytes_.empty()) return;
  const RowClaims& first = rows_[0];
  const bool is_entry = rows_.is_entry_row(first);
  if (!is_entry) ++assumed_;
  add_head(0, is_entry ? CodeValues::at_entry(machine_) : rows_.values_of(first), false);
  work();
  assume_unreached();
  note_overlaps();
  // The worst of an instruction comes first.
  sort_by(notes_, [](const Note& note) {
    const auto better = static_cast<unsigned>(Verdict::disagrees) - static_cast<unsigned>(note.judgement.verdict);
    return std::uint64_t{note.offset} << 2 | better;
  });
}

}  // namespace jitunwind::check_code
