// Marks from the bytes of a procedure that is written: its instructions are read, and their frames are followed along
// its jumps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/adapters/xbyak/frame_state.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind::xbyak {

/// Bytes of instructions, as offsets. An empty one is a place that control does not reach.
struct WrittenSpan {
  std::size_t begin;
  std::size_t end;
};

/// Reads one procedure. Allocates; errors have an offset in the procedure.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> procedure) noexcept : bytes_(procedure) {}

  /// Reads the instructions of these spans, which are sorted; no other instruction concerns the frame.
  Status read(std::span<const WrittenSpan> spans);
  /// Reads every instruction that control reaches, from the first one and from these spans on.
  Status read_all(std::span<const WrittenSpan> spans);
  /// Finds the frame at each of them, and records the changes.
  Status record(x86_64::Marks& marks);
  /// Precondition: recorded. The end of the last instruction to which a path leads; padding and data may follow.
  std::size_t end() const noexcept { return end_; }

 private:
  using Effect = MachineInstruction::Effect;
  static constexpr std::int64_t k_entry_label = 1;
  static constexpr std::size_t k_fp_slot = 1;

  struct Item {
    std::size_t offset = 0;
    MachineInstruction instruction{};  // length 0: a place that control does not reach
    bool is_reached = false;
    FrameState before{};
    FrameState after{};

    std::size_t end() const noexcept { return offset + instruction.length; }
  };
  struct Target {
    std::size_t offset;
    FrameState frame;
  };
  static Error error(std::size_t offset, const char* what) noexcept {
    return {ErrorCode::invalid_argument, offset, what};
  }
  static bool is_direct(const MachineInstruction& i) noexcept { return i.operand.kind == JumpOperand::Kind::none; }

  Status read_one(std::size_t offset);
  Status follow(const Target& target);
  Status leave(const Item& item);
  Status follow_all();
  bool goes_on(const Item& item) const noexcept {
    const bool is_breakpoint = item.instruction.length == 1 && bytes_[item.offset] == std::byte{0xcc};
    return item.instruction.goes_on() || is_breakpoint;
  }
  void change(x86_64::Marks& marks, std::size_t end, const FrameState& from, const FrameState& to) const;
  void enter(x86_64::Marks& marks, std::size_t offset, const FrameState& frame) const;

  std::span<const std::byte> bytes_;
  std::size_t end_ = bytes_.size();
  std::vector<Item> items_;
  std::vector<Target> targets_;
  std::vector<Target> tables_;  // jumps to unknown addresses, by their own
  bool has_starts_ = true;      // code that only jumps to unknown addresses reach is among the items
};

inline Status FrameReader::read_one(std::size_t offset) {
  Item& item = items_.emplace_back();
  item.offset = offset;
  item.instruction = arch::x86_64.read_instruction(bytes_.subspan(offset), static_cast<Addr>(offset));
  if (item.instruction.length == 0) return error(offset, "is an instruction that cannot be read");
  return Done{};
}

inline Status FrameReader::read(std::span<const WrittenSpan> spans) {
  std::size_t bytes = 0;
  for (const WrittenSpan& span : spans) bytes += span.end - span.begin;
  items_.reserve(bytes / 2 + spans.size());
  for (const WrittenSpan& span : spans) {
    if (!items_.empty() && span.begin < items_.back().end()) return error(span.begin, "was written twice");
    if (span.begin == span.end) items_.push_back(Item{span.begin, {}});
    for (std::size_t at = span.begin; at < span.end; at = items_.back().end())
      if (Status s = read_one(at); !s) return s;
  }
  return Done{};
}

inline Status FrameReader::read_all(std::span<const WrittenSpan> spans) {
  has_starts_ = !spans.empty();
  std::vector<bool> is_read(bytes_.size() + 1);
  std::vector<std::size_t> starts{0}, walls;
  if (Status s = read(spans); !s) return s;
  for (const Item& item : items_) (item.instruction.length == 0 ? walls : starts).push_back(item.offset);
  items_.clear();
  for (const std::size_t wall : walls) items_.push_back(Item{wall, {}});
  while (!starts.empty()) {
    std::size_t at = starts.back();
    starts.pop_back();
    for (bool is_first = true; at < bytes_.size() && !is_read[at]; is_first = false) {
      if (!is_first && std::binary_search(walls.begin(), walls.end(), at)) break;
      if (Status s = read_one(at); !s) return s;
      is_read[at] = true;
      const Item& item = items_.back();
      const bool jumps = item.instruction.effect == Effect::branch || item.instruction.effect == Effect::jump;
      if (jumps && is_direct(item.instruction)) starts.push_back(item.instruction.target);
      if (!goes_on(item)) break;
      at = item.end();
    }
  }
  std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.offset < b.offset; });
  return Done{};
}

/// A jump or a return.
inline Status FrameReader::leave(const Item& item) {
  const MachineInstruction& i = item.instruction;
  const FrameState& frame = item.after;
  if (i.effect == Effect::ret)
    return frame.is_released() ? Status(Done{}) : error(item.offset, "returns with rsp not at the return address");
  if (i.effect != Effect::jump && i.effect != Effect::branch) return Done{};
  if (is_direct(i) && i.target < bytes_.size())
    targets_.push_back({i.target, frame});
  else if (!is_direct(i) && !frame.is_released())
    tables_.push_back({item.offset, frame});
  else if (!frame.is_released())
    return error(item.offset, "leaves the procedure with its frame in place");
  return Done{};
}

inline Status FrameReader::follow(const Target& target) {
  FrameState frame = target.frame;
  auto item = std::lower_bound(items_.begin(), items_.end(), target.offset,
                               [](const Item& i, std::size_t offset) { return i.offset < offset; });
  for (bool is_first = true; item != items_.end(); ++item, is_first = false) {
    if (item->instruction.length == 0) {
      if (is_first && item->offset == target.offset) continue;
      return Done{};
    }
    if (item->is_reached)
      return item->before == frame ? Status(Done{}) : error(item->offset, "is reached with different frames");
    item->is_reached = true;
    item->before = frame;
    if (const char* reason = frame.execute(item->instruction)) return error(item->offset, reason);
    item->after = frame;
    if (Status s = leave(*item); !s) return s;
    if (!goes_on(*item)) return Done{};
  }
  return error(bytes_.size(),
               "control runs off the end: unreachable() says that it does not, and a return that was "
               "written through Xbyak::CodeGenerator itself is not seen");
}

inline Status FrameReader::follow_all() {
  targets_.push_back({0, {}});
  while (!targets_.empty()) {
    const Target target = targets_.back();
    targets_.pop_back();
    if (Status s = follow(target); !s) return s;
    if (!targets_.empty()) continue;
    // Jumps to unknown addresses lead to code that nothing else reaches.
    const auto missed = std::find_if(items_.begin(), items_.end(),
                                     [](const Item& item) { return !item.is_reached && item.instruction.length != 0; });
    if (missed == items_.end()) break;
    const bool agree = std::all_of(tables_.begin(), tables_.end(),
                                   [&](const Target& table) { return table.frame == tables_[0].frame; });
    if (tables_.empty() || !agree)
      return error(missed->offset, "is reached by nothing that was seen: procedure() says that one begins here");
    targets_.push_back({missed->offset, tables_[0].frame});
  }
  return Done{};
}

/// Records what changes behind the instruction that ends at `end`.
inline void FrameReader::change(x86_64::Marks& marks, std::size_t end, const FrameState& from,
                                const FrameState& to) const {
  using D = DraftDirective;
  constexpr RegNum sp = x86_64::rsp.dwarf(), fp = x86_64::rbp.dwarf();
  static_assert(FrameState::k_preserved[k_fp_slot] == fp);
  const auto when = static_cast<std::int32_t>(end) - 1;
  const auto add = [&](RegNum reg, std::int64_t amount) {
    if (amount != 0) marks.directive(when, D::add(reg, amount));
  };
  const std::int64_t slot = to.slots[k_fp_slot];
  if (from.is_sp_known && to.is_sp_known) {
    add(sp, from.sp - to.sp);
  } else if (from.is_sp_known) {  // rows by rbp need no more of SP
    marks.directive(when, D::save_reg(sp, fp));
    add(fp, from.sp - to.fp);
  } else if (to.is_sp_known) {
    marks.directive(when, D::save_reg(fp, sp));
    add(sp, from.fp - to.sp);
    if (slot != 0) {  // rbp is the frame pointer no longer, and not the caller's value yet
      marks.directive(when, D::save_reg(fp, fp));
      marks.directive(when, D::spill_sp_rel(fp, to.sp - slot));
    }
  } else {
    add(fp, from.fp - to.fp);
  }
  for (std::size_t n = 0; n < to.slots.size(); ++n) {
    const RegNum reg = FrameState::k_preserved[n];
    if (to.slots[n] == from.slots[n] || to.slots[n] == 0) continue;
    marks.directive(
        when, to.is_sp_known ? D::spill_sp_rel(reg, to.sp - to.slots[n]) : D::spill_fp_rel(reg, to.fp - to.slots[n]));
  }
}

/// Records a frame that does not come from the instruction in front of it: from that at the entry on.
inline void FrameReader::enter(x86_64::Marks& marks, std::size_t offset, const FrameState& frame) const {
  marks.copy_state(static_cast<std::int32_t>(offset) - 1, k_entry_label);
  FrameState built = frame;
  built.is_sp_known = true;
  if (!frame.is_sp_known) built.sp = std::max(frame.sp, *std::max_element(frame.slots.begin(), frame.slots.end()));
  change(marks, offset, {}, built);
  if (!frame.is_sp_known) change(marks, offset, built, frame);
}

inline Status FrameReader::record(x86_64::Marks& marks) {
  if (Status s = follow_all(); !s) return s;
  if (!has_starts_ && !tables_.empty())
    return error(tables_[0].offset, "jumps to an unknown address with the frame in place");
  marks.label_state(k_entry_label);
  const Item* before = nullptr;
  for (const Item& item : items_) {
    if (!item.is_reached) continue;
    if (before && !goes_on(*before) && !(item.before == before->after)) enter(marks, before->end(), item.before);
    change(marks, item.end(), item.before, item.after);
    before = &item;
  }
  if (before) end_ = before->end();
  marks.ends_without_return();  // the last instruction may be a jump that keeps the frame
  return Done{};
}

}  // namespace jitunwind::xbyak
#pragma GCC visibility pop
