#include "jitunwind/unwind_core/check/code_paths_p.h"

#include <algorithm>
#include <array>
#include <functional>

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
/// The instructions before an indirect jump that may tell its table. 256 would tell 139 more of libLLVM's 12,598.
constexpr unsigned k_most_of_switch = 64;

}  // namespace

CodePaths::CodePaths(const Machine& machine, AddrRange code, std::span<const std::byte> bytes, const ClaimedRows& rows,
                     const KnownJumps& jumps, CheckedParts::Ways* ways)
    : machine_(machine),
      code_(code),
      bytes_(bytes),
      rows_(rows),
      jumps_(jumps),
      ways_(ways),
      shapes_(bytes.size()),
      head_at_(bytes.size(), k_no_head),
      read_at_(bytes.size() < 0xffff ? bytes.size() : 0),
      ways_left_(64 + bytes.size() / 256),
      steps_left_(k_most_visits * bytes.size() + 64) {}

const MachineInstruction& CodePaths::read(std::uint32_t offset) noexcept {
  if (offset < read_at_.size() && read_at_[offset] != 0) return read_[read_at_[offset] - 1u];
  unlisted_ = machine_.arch.read_instruction(bytes_.subspan(offset), code_.begin + offset);
  return unlisted_;
}

/// False: it is no code that could be read.
bool CodePaths::mark_head(Addr target) {
  if (!code_.contains(target) || target - code_.begin >= shapes_.size()) return false;
  shapes_[static_cast<std::size_t>(target - code_.begin)] |= k_is_head;
  return true;
}

/// Finds the targets of direct jumps and of tables, in one pass. Code that follows data may be misread: its targets
/// become heads when a path meets the jump.
void CodePaths::find_heads() {
  const std::uint32_t unit = machine_.arch.unit;
  constexpr std::size_t k_bytes_of_most = 4;  // of an instruction
  read_.reserve(read_at_.size() / k_bytes_of_most);
  std::size_t count = 1;
  std::uint8_t behind = 0;
  for (std::uint32_t at = 0; at < bytes_.size();) {
    const MachineInstruction& i = read(at);
    if (at < read_at_.size()) {
      read_.push_back(i);
      read_at_[at] = static_cast<std::uint16_t>(read_.size());
    }
    if (i.length == 0) {
      at += unit;
      behind = 0;
      continue;
    }
    shapes_[at] |= i.length | behind;
    if (!i.pads) behind = !i.goes_on() || i.effect == Effect::call ? k_behind_end : std::uint8_t{0};
    const bool jumps = i.effect == Effect::branch || i.effect == Effect::jump;
    if (jumps && i.target != 0)
      count += mark_head(i.target);
    else if (jumps && i.operand.kind == JumpOperand::Kind::value)
      table_jumps_.push_back({at, 0, 0, {}});
    at += i.length;
  }
  jumps_.visit_pads([&](Addr pad) { count += mark_head(pad); });
  std::erase_if(table_jumps_, [this](TableJump& jump) { return !find_table(jump); });
  find_open_targets();
  heads_.reserve(count);
}

/// The begin of the instruction that ends there; k_no_head: it is not known.
std::uint32_t CodePaths::instruction_before(std::uint32_t end) const noexcept {
  constexpr std::uint32_t k_longest = 15;
  std::uint32_t length = 1;
  while (length <= std::min(end, k_longest) && length_at(end - length) != length) ++length;
  return length > std::min(end, k_longest) ? k_no_head : end - length;
}

/// Some instructions up to `end`.
CodePiece CodePaths::piece_before(std::uint32_t end) const noexcept {
  std::uint32_t begin = end;
  for (unsigned n = 0; n < k_most_of_switch; ++n) {
    const std::uint32_t before = instruction_before(begin);
    if (before == k_no_head) break;
    begin = before;
  }
  return piece(begin, end);
}

/// A table whose bound is known is preferred.
bool CodePaths::find_table(TableJump& jump) {
  const std::uint32_t end = jump.at + length_at(jump.at);
  jump.first = static_cast<std::uint32_t>(targets_.size());
  const CodePiece before = piece_before(end);
  JumpTable open;
  const auto add = [&](std::span<const CodePiece> way) {
    jump.table = read_jump_table(machine_.arch, way);
    asks_tables_ |= jump.table.count != 0;
    if (!jump.table.is_open && jumps_.add_targets(jump.table, targets_)) return true;
    if (jump.table.count != 0) open = jump.table, open.is_open = true;
    return false;
  };
  bool is_known = add({&before, 1});
  for (std::uint32_t at = jump.at; !is_known && at > before.at - code_.begin; at = instruction_before(at)) {
    const std::uint32_t branch = (shapes_[at] & k_is_head) != 0 ? branch_to(at) : k_no_head;
    if (branch == k_no_head || ways_left_ == 0) continue;
    --ways_left_;
    const std::array way{piece_before(branch + length_at(branch)), piece(at, end)};
    is_known = add(way);
  }
  if (is_known) return keep_targets(jump);
  jump.table = open;
  return open.count != 0;
}

/// All tables together have a target for each two bytes at most.
bool CodePaths::keep_targets(TableJump& jump) {
  jump.last = static_cast<std::uint32_t>(targets_.size());
  const auto is_read = [&](std::uint32_t target) { return target < bytes_.size(); };
  if (targets_.size() > bytes_.size() / 2 || !std::ranges::all_of(targets_of(jump), is_read))
    return targets_.resize(jump.first), false;
  for (const std::uint32_t target : targets_of(jump)) (void)mark_head(code_.begin + target);
  return true;
}

/// A table ends where the next one begins.
void CodePaths::find_open_targets() {
  std::vector<Addr> tables;
  for (const TableJump& jump : table_jumps_) tables.push_back(jump.table.at);
  std::ranges::sort(tables);
  std::erase_if(table_jumps_, [&](TableJump& jump) {
    if (!jump.table.is_open) return false;
    const auto next = std::ranges::upper_bound(tables, jump.table.at);
    const Addr most = next == tables.end() ? JumpTable::k_longest : (*next - jump.table.at) / jump.table.entry_size;
    jump.table.count = static_cast<std::uint32_t>(std::min<Addr>(jump.table.count, most));
    jump.first = static_cast<std::uint32_t>(targets_.size());
    return !jumps_.add_targets(jump.table, targets_) || !keep_targets(jump);
  });
}

/// A conditional branch that leads there; k_no_head: there is none.
std::uint32_t CodePaths::branch_to(std::uint32_t offset) {
  if (branches_.empty()) {
    for (std::uint32_t at = 0; at < bytes_.size(); at += std::max<std::uint32_t>(length_at(at), machine_.arch.unit)) {
      const MachineInstruction& i = read(at);
      if (i.effect == Effect::branch && code_.contains(i.target))
        branches_.push_back({static_cast<std::uint32_t>(i.target - code_.begin), at});
    }
    branches_.push_back({k_no_head, k_no_head});
    std::ranges::sort(branches_);
  }
  const auto found = std::ranges::lower_bound(branches_, std::pair{offset, std::uint32_t{0}});
  return found->first == offset ? found->second : k_no_head;
}

void CodePaths::note(const Path& path, std::uint32_t offset, Judgement judgement) {
  shapes_[offset] |= k_seen;
  if (judgement.verdict == Verdict::agrees) return;
  if (path.is_assumed && judgement.verdict == Verdict::disagrees) {
    judgement = {Verdict::cannot_tell, unreached_, judgement.reg};
    refuted_end_ = std::max(refuted_end_, offset + 1);
  }
  if (notes_.size() >= most_notes_) drop_old_notes();
  notes_.push_back({offset, path.head, heads_[path.head].turn, judgement});
}

/// Whatever paths lead there.
void CodePaths::note(std::uint32_t offset, CannotTell why) {
  shapes_[offset] |= k_seen;
  notes_.push_back({offset, k_no_head, 0, {Verdict::cannot_tell, why}});
}

void CodePaths::drop_old_notes() {
  std::erase_if(notes_, [this](const Note& n) { return n.head != k_no_head && n.turn != heads_[n.head].turn; });
  most_notes_ = std::max(most_notes_, 2 * notes_.size());
}

std::uint32_t CodePaths::assumed() const noexcept {
  std::uint32_t sum = assumed_;
  for (const Head& head : heads_) sum += head.assumed;
  return sum;
}

void CodePaths::add_head(std::uint32_t offset, const CodeValues& values, bool is_assumed) {
  std::uint32_t& index = head_at_[offset];
  if (index == k_no_head) {
    index = static_cast<std::uint32_t>(heads_.size());
    heads_.push_back({offset, is_assumed, true, values});
  } else {
    Head& head = heads_[index];
    if (!head.values.merge(values) || head.waits) return;
    head.waits = true;
  }
  waiting_.push_back(offset);
  std::ranges::push_heap(waiting_, std::greater());
}

/// Code that follows a call directly, with a row of its own, is that of other paths: the call does not return.
bool CodePaths::ends_in_call(Path& path, std::uint32_t row) const noexcept {
  return path.called != k_no_head && judge(path, row).verdict != Verdict::agrees && !rows_.are_equal(path.called, row);
}

/// Callees may pop arguments. A row that finds the CFA by SP tells how many.
void CodePaths::settle(Path& path, const RowClaims& row) noexcept {
  if (!path.values.may_have_popped() || row.cfa != RowClaims::Cfa::offset || row.cfa_base != machine_.sp) return;
  if (!path.values.pop_up_to(-row.cfa_offset, machine_)) return;
  ++heads_[path.head].assumed;
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
  if (ends_in_call(path, row)) return;
  note(path, to, judge(path, row));
  add_head(to, path.values, path.is_assumed);
}

/// Does so if the row there agrees.
bool CodePaths::flow_if_right(Path& path, std::uint32_t to) {
  const std::uint32_t row = rows_.index_at(to);
  settle(path, rows_[row]);
  if (judge(path, row).verdict != Verdict::agrees) return false;
  flow(path, to);
  return true;
}

void CodePaths::jump(Path& path, const MachineInstruction& i) {
  if (i.target == 0) return jump_by_table(path);
  path.called = k_no_head;  // the jump is no padding
  if (!code_.contains(i.target)) return leave(path, i.target, path.at, false);
  const auto target = static_cast<std::uint32_t>(i.target - code_.begin);
  if (target >= bytes_.size()) return;
  const bool tells_sp = i.condition == MachineInstruction::If::equal && path.equal != k_no_reg;
  if (!tells_sp && !path.values.may_have_popped()) return flow(path, target);
  Path there = path;
  if (tells_sp) there.values.equate_sp(path.equal, machine_), there.judged_row = k_no_head;
  flow(there, target);
}

/// A table may be shorter than the bound of its index, if that is known to be less. Targets that rows refute are not
/// followed.
void CodePaths::jump_by_table(Path& path) {
  const auto known = std::ranges::lower_bound(table_jumps_, path.at, {}, &TableJump::at);
  const bool has_table = known != table_jumps_.end() && known->at == path.at;
  path.called = k_no_head;
  bool leads_to_all = has_table && !known->table.is_open;
  if (leads_to_all) {
    for (const std::uint32_t target : targets_of(*known)) {
      Path there = path;
      leads_to_all &= length_at(target) != 0 && flow_if_right(there, target);
    }
  } else if (has_table) {
    open_.insert_or_assign(path.at, Missed{path, heads_[path.head].turn});
  }
  if (!leads_to_all) unreached_ = CannotTell::indirect_jump, keep_candidate(path.values);
}

/// The callee may have ended by an exception. Calls that cannot are among those of a landing pad as well, with other
/// frames.
void CodePaths::land(const Path& path, Addr pad, std::uint32_t from) {
  if (pad == 0) return;
  if (!code_.contains(pad)) return leave(path, pad, from, true);
  const auto offset = static_cast<std::uint32_t>(pad - code_.begin);
  if (offset >= bytes_.size()) return;
  Path there = path;
  there.called = k_no_head;
  if (!flow_if_right(there, offset)) missed_.insert_or_assign(offset, Missed{there, heads_[path.head].turn});
}

/// A state that was assumed, or that is not what this code's own row says, proves nothing elsewhere.
void CodePaths::leave(const Path& path, Addr target, std::uint32_t from, bool is_pad) {
  constexpr std::size_t k_most = 4096;
  if (!ways_ || path.is_assumed || path.judgement.verdict != Verdict::agrees) return;
  if (!is_pad && path.values.is_call_frame(machine_)) return ways_->add_call(target);
  if (exits_.size() < k_most) exits_.insert_or_assign(from, CheckedParts::Ways::Way{target, is_pad, path.values});
}

/// Other code leads there. It is a head that nothing leads to.
void CodePaths::enter(const CheckedParts::Ways::Way& way) {
  const auto offset = static_cast<std::uint32_t>(way.target - code_.begin);
  if (offset >= bytes_.size()) return;
  if (heads_.empty()) heads_.push_back({.offset = k_no_head, .is_assumed = false, .waits = true, .values = way.values});
  shapes_[offset] |= k_is_head;
  Path path{0, offset, way.values, false};
  if (way.is_pad)
    land(path, way.target, offset);
  else
    flow(path, offset);
}

/// A landing pad must have the frame of one of its calls at least.
void CodePaths::land_missed() {
  for (auto& [pad, missed] : missed_) {
    if (missed.turn != heads_[missed.path.head].turn) continue;
    if (head_at_[pad] != k_no_head)
      ++assumed_;  // that the call does not throw
    else
      flow(missed.path, pad);
  }
  missed_.clear();
}

/// Enters what the open tables name, if nothing else leads there and it has the frame of the jump. Entries beyond the
/// end of a table would have to name the begin of such code by chance. True: there is some.
bool CodePaths::enter_cases() {
  bool enters = false;
  for (auto& [at, open] : open_) {
    if (open.turn != heads_[open.path.head].turn) continue;
    const auto jump = std::ranges::lower_bound(table_jumps_, at, {}, &TableJump::at);
    for (const std::uint32_t target : targets_of(*jump)) {
      if ((shapes_[target] & k_seen) != 0 || (shapes_[target] & k_behind_end) == 0) continue;
      Path there = open.path;
      enters |= flow_if_right(there, target);
    }
  }
  open_.clear();
  return enters;
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
  if (ends_in_call(path, row_)) return false;
  note(path, at, judge(path, row_));
  const MachineInstruction& i = read(at);
  if (i.length == 0) {
    if (at < bytes_.size()) unreached_ = CannotTell::unknown_instruction;
    return false;
  }
  may_overlap_ |= length_at(at) == 0;
  shapes_[at] = static_cast<std::uint8_t>((shapes_[at] & ~k_length) | i.length);
  if (i.effect == Effect::unknown) unreached_ = CannotTell::unknown_instruction;
  if (i.effect == Effect::ret && path.values.returns_elsewhere(machine_))
    note(path, at, {Verdict::disagrees, CannotTell::none, machine_.arch.sp, path.values.reg(machine_.sp)});
  path.values.apply(i, machine_, at);
  if (changes(i, rows_[row_], path.values, machine_)) path.judged_row = k_no_head;
  if (i.effect == Effect::branch || i.effect == Effect::jump) jump(path, i);
  if (i.condition == MachineInstruction::If::different && path.equal != k_no_reg)
    path.values.equate_sp(path.equal, machine_), path.judged_row = k_no_head;
  path.equal = i.effect != Effect::compare ? k_no_reg : i.reg == machine_.arch.sp ? i.base : i.reg;
  if (i.reg != machine_.arch.sp && i.base != machine_.arch.sp) path.equal = k_no_reg;
  if (i.effect == Effect::call) {
    keep_candidate(path.values);
    path.called = row_;
    if (ways_ && i.target != 0 && !path.is_assumed && !code_.contains(i.target)) ways_->add_call(i.target);
    land(path, jumps_.pad_of(at + i.length - 1), at);
  } else if (!i.pads) {
    path.called = k_no_head;
  }
  path.at = at + i.length;
  return i.goes_on();
}

void CodePaths::follow(std::uint32_t index) {
  Head& head = heads_[index];
  head.waits = false;
  ++head.turn;
  head.assumed = 0;
  for (std::uint32_t at = head.offset; at < head.end; ++at) shapes_[at] &= static_cast<std::uint8_t>(~k_seen);
  Path path{index, head.offset, head.values, head.is_assumed};
  if (path.at == 0) path.called = 0;  // gcc puts a nop in front of a landing pad that begins a part
  const auto goes_on = [&] {
    if (!step(path) || path.at >= bytes_.size()) return false;
    if ((shapes_[path.at] & k_is_head) == 0 && head_at_[path.at] == k_no_head) return true;
    flow(path, path.at);
    return false;
  };
  while (steps_left_ != 0 && goes_on()) --steps_left_;
  if (steps_left_ == 0) note(path, path.at, {Verdict::cannot_tell, CannotTell::too_long});
  heads_[index].end = path.at;
}

/// Follows heads in the order of the code, so that most are followed once, with all that leads there.
void CodePaths::follow_waiting() {
  while (!waiting_.empty()) {
    std::ranges::pop_heap(waiting_, std::greater());
    const std::uint32_t offset = waiting_.back();
    waiting_.pop_back();
    follow(head_at_[offset]);
  }
}

void CodePaths::work() {
  do {
    follow_waiting();
    land_missed();
    follow_waiting();
  } while (enter_cases());
  judged_ = static_cast<std::uint32_t>(heads_.size());
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
  if (!has_one && row.is_of_linkage && rows_.is_entry_row(row)) {
    values = CodeValues::at_entry(machine_);
  } else if (!has_one) {
    values = rows_.values_of(row);
    note(offset, row.why != CannotTell::none ? row.why : unreached_);
  }
  add_head(offset, values, true);
}

void CodePaths::assume_unreached() {
  for (std::uint32_t at = 0; at < bytes_.size();) {
    if ((shapes_[at] & k_seen) == 0) {
      const MachineInstruction& i = read(at);
      if (i.pads) {
        at += i.length;
        continue;
      }
      if (i.length == 0) {
        note(at, CannotTell::unknown_instruction);
        at += machine_.arch.unit;
        continue;
      }
      assume(at);
      work();
    }
    at += std::max<std::uint32_t>(length_at(at), machine_.arch.unit);
  }
}

/// Whether the code returns as if it were called at this offset. An epilogue does not, which raises SP first.
/// Precondition: the first row is that of an entry.
bool CodePaths::returns_from(std::uint32_t at) {
  CodeValues values = CodeValues::at_entry(machine_);
  while (at < bytes_.size()) {
    const MachineInstruction& i = read(at);
    if (i.effect == Effect::ret) return rows_.judge(rows_[0], values).verdict == Verdict::agrees;
    if (i.length == 0 || !i.goes_on()) return false;
    values.apply(i, machine_, at);
    at += i.length;
  }
  return false;
}

/// `begin`: behind all that paths reach. Data is hardly read as code that ends with its last byte. Dead code, such as
/// an epilogue behind a call that does not return, has the frame in place where it begins, and does not return without
/// it.
void CodePaths::find_foreign(std::uint32_t begin) {
  const std::uint32_t unit = machine_.arch.unit;
  const auto size = static_cast<std::uint32_t>(bytes_.size());
  foreign_begin_ = size;
  while (begin < size && read(begin).pads) begin += std::max<std::uint32_t>(read(begin).length, unit);
  const auto has_entry_row = [&](std::uint32_t at) { return rows_.is_entry_row(rows_[rows_.index_at(at)]); };
  if (begin >= size || !(has_entry_row(begin) || (has_entry_row(0) && returns_from(begin)))) return;
  bool has_ended = false, is_stub = false, has_jumped = false;
  for (std::uint32_t at = begin; at < size;) {
    const MachineInstruction& i = read(at);
    if (i.length == 0 || i.effect == Effect::unknown) return;
    if (!i.pads) has_ended = !i.goes_on();
    const bool jumps = i.effect == Effect::jump;
    const bool by_word = i.operand.kind == JumpOperand::Kind::memory && i.operand.base == k_no_reg;
    if (jumps && !has_jumped) is_stub = by_word;
    has_jumped |= jumps;
    at += i.length;
  }
  if (has_ended && (is_stub || refuted_end_ > begin)) foreign_begin_ = begin;
}

/// Code in which an instruction begins in the middle of another one is read in two ways. Code that jumps behind a
/// prefix, as the C library jumps over `lock`, is not meant.
void CodePaths::note_overlaps() {
  if (!may_overlap_) return;
  std::uint32_t end = 0;
  for (std::uint32_t at = 0; at < bytes_.size(); ++at) {
    if ((shapes_[at] & k_seen) == 0) continue;
    const std::uint32_t its_end = at + length_at(at);
    if (at < end && its_end != end) note(at, CannotTell::inside_instruction);
    end = std::max(end, its_end);
  }
}

std::uint32_t CodePaths::judged_end() const noexcept {
  auto last = static_cast<std::uint32_t>(shapes_.size());
  while (last != 0 && (shapes_[last - 1] & k_seen) == 0) --last;
  return last == 0 ? 0 : last - 1 + std::max<std::uint32_t>(length_at(last - 1), machine_.arch.unit);
}

/// If the first row is not that of a call, and no way from elsewhere is known to lead there, it is taken at its word.
void CodePaths::begin(bool is_entry) {
  if (ways_) {
    ways_->visit_ways_into(code_, machine_, [this](const CheckedParts::Ways::Way& way) { enter(way); });
  }
  if (is_entry) add_head(0, CodeValues::at_entry(machine_), false);
  work();
  for (const auto& [from, way] : exits_) ways_->add(way, code_.begin, machine_);
  const bool has_begun = judged_ != 0 && (read(0).pads || (shapes_[0] & k_seen) != 0);
  if (is_entry || has_begun) return;
  ++assumed_;
  add_head(0, rows_.values_of(rows_[0]), judged_ != 0);
  work();
}

void CodePaths::follow_all(bool begins_as_entry) {
  find_heads();
  if (bytes_.empty()) return;
  begin(begins_as_entry);
  const std::uint32_t reached_end = judged_end();
  assume_unreached();
  find_foreign(reached_end);
  note_overlaps();
  drop_old_notes();
  // Notes that hold for every path come first, then the worst.
  sort_by(notes_, [](const Note& n) {
    const unsigned better = n.head == k_no_head ? 0 : n.judgement.verdict == Verdict::disagrees ? 1 : 2;
    return std::uint64_t{n.offset} << 2 | better;
  });
}

}  // namespace jitunwind::check_code
