#include "jitunwind/adapters/asmjit/known_frames/marked_procedures_p.h"

#include <algorithm>
#include <array>
#include <memory_resource>
#include <span>
#include <string_view>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_rows_p.h"
#include "jitunwind/adapters/asmjit/derivation/plain_frame_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind::derivation {
namespace {

namespace v = asmjit_version;
namespace Inst = ::asmjit::x86::Inst;
using ::asmjit::CodeHolder;

/// One pass over the code. Every label has one state: that of the first path that leads there, which the others must
/// have too. A label that only later code jumps to is assumed to have the state of the code in front of it.
class CodeMarker {
 public:
  CodeMarker(const TraceRecorder& recorder, const TraceRecorder::Written& written, const CodeHolder& code)
      : recorder_(recorder), written_(written), code_(code) {}

  bool run();
  std::list<MarkedProcedure> take() { return std::move(procedures_); }

 private:
  static constexpr std::size_t k_none = SIZE_MAX;
  /// A place with a label, or at which a procedure may begin.
  struct Point {
    std::uint32_t offset = 0;
    LabelId label = k_no_label;
    std::string_view name{};
    bool declared = false;            ///< a procedure begins here
    bool hinted = false;              ///< so it does if nothing leads here
    bool called = false;              ///< so it does
    bool passed = false;              ///< the pass was here
    bool is_taken = false;            ///< an instruction takes its address
    std::size_t state = k_none;       ///< number in states_; none: no path leads here so far
    std::size_t assumption = 0;       ///< number of the assumption that a path will lead here
    std::size_t depends_on = k_none;  ///< that of the path which leads here and depends on the earliest
    std::size_t procedure = k_none;   ///< number of the procedure with that state
  };
  struct State {
    PlainFrame::Facts facts;
    bool is_labelled = false;  ///< directives can copy it
  };

  bool add_points();
  bool skip_data(std::uint32_t to);
  bool arrive(const TraceRecorder::Recorded& instruction);
  bool arrive_at(Point& point);
  bool begin_procedure(std::uint32_t offset, std::string_view name);
  bool is_quiet(const TraceRecorder::Recorded& instruction);
  bool changes_free_registers(const TraceRecorder::Recorded& instruction);
  [[gnu::flatten]] bool execute(const TraceRecorder::Recorded& instruction);
  bool moved(std::int32_t when);
  bool leave(const Effect& effect, std::uint32_t behind);
  bool go_to(LabelId label);
  bool call(LabelId label, std::uint32_t behind);
  Point* point_of(LabelId label) {
    return label < point_of_.size() && point_of_[label] != k_none ? &points_[point_of_[label]] : nullptr;
  }
  std::size_t present_state();
  std::size_t labelled_state();
  MarkRecorder& marks() { return procedures_.back().marks; }
  /// The time of directives that are in force from the offset on.
  std::int32_t time_before(std::uint32_t offset) const { return static_cast<std::int32_t>(offset - begin_) - 1; }
  void watch() { watched_ = frame_.watched(); }

  const TraceRecorder& recorder_;
  const TraceRecorder::Written& written_;
  const CodeHolder& code_;
  std::array<std::byte, 4096> memory_;  // as much as most code needs
  std::pmr::monotonic_buffer_resource pool_{memory_.data(), memory_.size()};
  std::pmr::vector<Point> points_{&pool_};                                         // by offset
  std::pmr::vector<std::size_t> point_of_{v::label_count(code_), k_none, &pool_};  // by label
  std::pmr::vector<State> states_{&pool_};
  std::list<MarkedProcedure> procedures_;
  const std::span<const RegSet> implicit_ = implicit_changes();
  PlainFrame frame_{arch::x86_64, abi_preserved(arch::x86_64)};
  RegSet watched_ = 0;  // of frame_
  std::size_t next_point_ = 0;
  std::size_t next_data_ = 0;
  std::uint32_t next_offset_ = 0;     // of that point; at first of the begin
  std::uint32_t begin_ = 0;           // of the procedure
  std::uint32_t end_ = 0;             // of the bytes passed
  std::uint32_t reached_end_ = 0;     // of those that a path led to which ended
  std::uint32_t call_end_ = 0;        // of the last call, and of padding behind it
  std::size_t state_ = k_none;        // number of the present state
  std::int32_t changed_at_ = -1;      // time of the last directive
  std::size_t assumptions_ = 0;       // numbered from 1
  std::size_t open_assumptions_ = 0;  // those that no path has confirmed that depends on earlier ones only
  std::size_t depends_on_ = 0;        // number of the assumption that the present instruction is reached by
  bool is_reached_ = false;
  bool jumps_anywhere_ = false;  // to an address in a register or in memory
};

bool CodeMarker::run() {
  if (!add_points()) return false;
  const std::span<const std::uint8_t> bytes = v::section_bytes(code_, 0);
  for (const TraceRecorder::Recorded& i : written_.instructions) {
    if ((i.begin != end_ || i.begin >= next_offset_ || !is_reached_) && !arrive(i)) return false;
    end_ = i.end;
    if (!is_quiet(i) && !execute(i)) return false;
  }
  const auto is_unknown = [&](const Point& p) {
    return p.passed ? p.is_taken && jumps_anywhere_ && p.state != k_none : p.called || p.state != k_none;
  };
  if (procedures_.empty()) return false;
  procedures_.back().end = is_reached_ ? end_ : reached_end_;
  return skip_data(static_cast<std::uint32_t>(bytes.size())) && next_data_ == written_.data.size() &&
         open_assumptions_ == 0 && std::ranges::none_of(points_, is_unknown) &&
         !TraceRecorder::have_changed(written_, bytes);
}

/// False: a procedure has another convention than the psABI's, or there is code in other sections.
bool CodeMarker::add_points() {
  for (std::uint32_t id = 1; id < v::section_count(code_); ++id)
    if (!v::is_address_table(code_, id) && v::buffer_size(*v::section_by_id(code_, id)) != 0) return false;
  points_.reserve(recorder_.starts().size() + v::label_count(code_));
  const RegSet convention = abi_preserved(arch::x86_64) & ~set_of(arch::x86_64.sp);
  for (const ProcedureStart& start : recorder_.starts()) {
    if (start.preserved != 0 && start.preserved != convention) return false;
    points_.push_back({start.place.offset, k_no_label, start.name, start.declared, true});
  }
  for (LabelId id = 0; id < v::label_count(code_); ++id) {
    const v::BoundLabel label = v::bound_label(code_, id);
    const bool is_named = !label.name.empty();
    if (label.bound && label.section == 0)
      points_.push_back({static_cast<std::uint32_t>(label.offset), id, label.name, false, is_named});
  }
  if (!std::ranges::is_sorted(points_, {}, &Point::offset)) std::ranges::stable_sort(points_, {}, &Point::offset);
  std::size_t count = 0;  // of different offsets
  for (const Point& one : points_) {
    if (count == 0 || points_[count - 1].offset != one.offset) points_[count++] = one;
    Point& point = points_[count - 1];
    point.declared |= one.declared;
    point.hinted |= one.hinted;
    if (!one.name.empty()) point.name = one.name;
    if (one.label != k_no_label) point_of_[one.label] = count - 1;
  }
  points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(count), points_.end());
  return true;
}

/// False: control reaches data, or the bytes up to `to` were not written as data, or are written over.
bool CodeMarker::skip_data(std::uint32_t to) {
  if (is_reached_ && call_end_ != end_) return false;  // a call before data does not return
  if (is_reached_) reached_end_ = end_;
  is_reached_ = false;
  for (; next_data_ < written_.data.size() && written_.data[next_data_].begin == end_; ++next_data_)
    end_ = written_.data[next_data_].end;
  return end_ == to;
}

/// Passes data and points up to an instruction. A procedure begins at 0, point or not. False also: only padding may be
/// where no path leads.
bool CodeMarker::arrive(const TraceRecorder::Recorded& i) {
  const std::uint32_t offset = i.begin;
  if (offset != end_ && !skip_data(offset)) return false;
  while (next_point_ < points_.size() && points_[next_point_].offset < offset) ++next_point_;
  const bool is_there = next_point_ < points_.size() && points_[next_point_].offset == offset;
  if (is_there ? !arrive_at(points_[next_point_++]) : offset == 0 && !begin_procedure(offset, {})) return false;
  next_offset_ = next_point_ < points_.size() ? points_[next_point_].offset : UINT32_MAX;
  watch();
  return is_reached_ || i.mnemonic == k_padding;
}

bool CodeMarker::arrive_at(Point& point) {
  point.passed = true;
  const bool is_led_to = is_reached_ || point.state != k_none;
  if (point.offset == 0 || point.declared || point.called || (point.hinted && !is_led_to)) {
    // A call before another procedure does not return.
    if ((is_reached_ && call_end_ != end_) || point.state != k_none) return false;
    if (!begin_procedure(point.offset, point.name)) return false;
    depends_on_ = 0;
  } else if (procedures_.empty() || (point.state != k_none && point.procedure != procedures_.size())) {
    return false;
  } else if (is_reached_) {
    if (point.state != k_none && states_[point.state].facts != frame_.facts()) return false;
    depends_on_ = std::min(depends_on_, point.depends_on);
  } else if (point.state != k_none) {
    if (states_[point.state].facts != frame_.facts()) {
      changed_at_ = time_before(point.offset);
      marks().directive(changed_at_, DraftDirective::copy_state(point.state));
      frame_.become(states_[point.state].facts);
    }
    state_ = point.state;
    depends_on_ = point.depends_on;
  } else {
    depends_on_ = point.assumption = ++assumptions_;
    ++open_assumptions_;
  }
  frame_.meet();
  point.state = present_state();
  point.procedure = procedures_.size();
  return is_reached_ = true;
}

bool CodeMarker::begin_procedure(std::uint32_t offset, std::string_view name) {
  if (!procedures_.empty()) procedures_.back().end = is_reached_ ? end_ : reached_end_;
  procedures_.emplace_back(name, offset);
  begin_ = offset;
  frame_ = PlainFrame(arch::x86_64, abi_preserved(arch::x86_64));
  state_ = k_none;
  changed_at_ = -1;
  return is_reached_ = true;
}

std::size_t CodeMarker::present_state() {
  if (state_ == k_none) {
    state_ = states_.size();
    states_.push_back({frame_.facts()});
  }
  return state_;
}

/// The present state, which code behind may copy.
std::size_t CodeMarker::labelled_state() {
  State& state = states_[present_state()];
  if (!state.is_labelled) marks().directive(changed_at_, DraftDirective::label_state(state_));
  state.is_labelled = true;
  return state_;
}

/// Most instructions do nothing to a frame but to change registers that were saved, or that callers do not rely on.
/// The first word of each operand is taken for that of a register or base at first.
inline bool CodeMarker::is_quiet(const TraceRecorder::Recorded& i) {
  if (i.is_translated()) return false;
  const auto first_word = [&](std::size_t operand) { return k_general_sets[i.kept[operand].id() & 15]; };
  const RegSet named = implicit_[i.mnemonic] | first_word(0) | first_word(1) | first_word(2);
  if ((named & watched_) != 0 && !changes_free_registers(i)) return false;
  return i.mnemonic != Inst::kIdLea || v::memory_operand(i.kept[1]).label == k_no_label;
}

bool CodeMarker::changes_free_registers(const TraceRecorder::Recorded& i) {
  const RegSet implicit = implicit_[i.mnemonic];
  if (has(implicit, arch::x86_64.sp)) return false;
  NamedRegisters named;
  for (const ::asmjit::Operand_& op : i.kept) add_general(op, named);
  const RegSet changed = named.operands | implicit;
  if (((named.bases & frame_.addresses()) | (changed & frame_.relied_on())) != 0) return false;
  frame_.change(changed);
  return watch(), true;
}

bool CodeMarker::execute(const TraceRecorder::Recorded& i) {
  if (i.mnemonic == k_padding) return call_end_ = call_end_ == i.begin ? i.end : call_end_, true;
  const std::int32_t when = time_before(i.end);
  const RegSet implicit = i.is_translated() ? 0 : implicit_[i.mnemonic];
  const bool may_flow = has(implicit, arch::x86_64.sp), pushes = i.mnemonic == Inst::kIdPush;
  if (may_flow && (pushes || i.mnemonic == Inst::kIdPop) && is_gp64(i.kept[0])) {
    const RegNum reg = dwarf_of(i.kept[0].id());
    return (pushes ? frame_.push(reg, when, marks()) : frame_.pop(reg, when, marks())) && moved(when);
  }
  Effect one;
  if (may_flow && flow_effect(i.mnemonic, implicit, i.kept, one)) return leave(one, i.end);
  const bool is_sum = !may_flow && !i.is_translated() && sum_effect(i.mnemonic, i.kept, one);
  if (is_sum && one.reg == arch::x86_64.sp && one.base == one.reg && one.kind == Effect::Kind::copy)
    return frame_.raise_sp(one.value, when, marks()) && moved(when);
  const std::span<const Effect> effects = is_sum ? std::span<const Effect>(&one, 1) : recorder_.effects_of(i);
  if (effects.empty()) return true;
  const std::size_t before = marks().ops().size();
  if (!frame_.apply(effects, when, marks())) return false;
  watch();
  if (marks().ops().size() != before && !moved(when)) return false;
  return leave(effects.back(), i.end);
}

/// The frame has another state from this time on.
bool CodeMarker::moved(std::int32_t when) {
  changed_at_ = when;
  state_ = k_none;
  watch();
  return marks().ops().size() <= k_max_ops;
}

bool CodeMarker::leave(const Effect& e, std::uint32_t behind) {
  reached_end_ = behind;
  using Kind = Effect::Kind;
  switch (e.kind) {
    case Kind::call:
      call_end_ = behind;
      jumps_anywhere_ |= e.label == k_no_label && e.reg != k_no_reg;
      return e.label == k_no_label || call(e.label, behind);
    case Kind::branch:
      return go_to(e.label);
    case Kind::jump:
      is_reached_ = false;
      return go_to(e.label);
    case Kind::jump_indirect:
      jumps_anywhere_ = true;
      [[fallthrough]];
    case Kind::ret:
      is_reached_ = false;
      return frame_.is_released();
    case Kind::jump_elsewhere:
    case Kind::trap:
      is_reached_ = false;
      return true;
    case Kind::address_of:
      if (Point* const to = point_of(e.label)) to->is_taken = true;
      return true;
    default:
      return true;
  }
}

bool CodeMarker::go_to(LabelId label) {
  Point* const to = point_of(label);
  if (!to) return false;
  to->depends_on = std::min(to->depends_on, depends_on_);
  if (!to->passed && to->state == k_none) {
    to->state = labelled_state();
    to->procedure = procedures_.size();
    return true;
  }
  if (depends_on_ < to->assumption) to->assumption = 0, --open_assumptions_;
  return to->procedure == procedures_.size() && states_[to->state].facts == frame_.facts();
}

/// A procedure begins at the label. If it follows the call, this may be the idiom call next; next: pop.
bool CodeMarker::call(LabelId label, std::uint32_t behind) {
  Point* const to = point_of(label);
  if (!to || to->offset == behind) return false;
  to->called = true;
  if (!to->passed) return true;
  const auto begins_here = [&](const MarkedProcedure& p) { return p.begin == to->offset; };
  return std::ranges::any_of(procedures_, begins_here);
}

}  // namespace

std::list<MarkedProcedure> mark_procedures(const CodeWriters::Record& record) {
  const TraceRecorder::Written* const written = record.recorder ? record.recorder->only_instructions() : nullptr;
  if (!written) return {};
  CodeMarker marker(*record.recorder, *written, *record.code);
  return marker.run() ? marker.take() : std::list<MarkedProcedure>();
}

}  // namespace jitunwind::derivation
