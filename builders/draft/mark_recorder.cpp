#include "jitunwind/builders/draft/mark_recorder.h"

#include <algorithm>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/unwind_core/heap_internal.h"

namespace jitunwind {
namespace {

/// Replaces DWARF's numbers by those of directives. False: the CPU has no such register, or directives cannot name it.
bool number(unw_dyn_op_t& op, const Arch& arch) noexcept {
  if (!names_register(op.tag)) return op.reg = 0, true;
  const int reg = number_in_directives(arch, static_cast<RegNum>(op.reg));
  op.reg = static_cast<std::int16_t>(reg);
  if (op.tag != UNW_DYN_SAVE_REG) return reg >= 0;
  const int in = number_in_directives(arch, static_cast<unsigned>(op.val));
  op.val = static_cast<unw_word_t>(in);
  return reg >= 0 && in >= 0;
}

/// The directive as it was said. Precondition: not settled.
DraftDirective directive_of(const unw_dyn_op_t& op) noexcept {
  const bool moves = op.tag == UNW_DYN_SAVE_REG;
  return {static_cast<unw_dyn_operation_t>(op.tag), static_cast<RegNum>(op.reg),
          moves ? static_cast<RegNum>(op.val) : k_no_reg, moves ? 0 : static_cast<std::int64_t>(op.val)};
}

/// An offset from the end is negative.
Addr place_of(std::int32_t offset) noexcept { return static_cast<Addr>(std::int64_t{offset}); }

}  // namespace

MarkRecorder::MarkRecorder(const Arch& arch) noexcept : arch_(&arch) {
  if (checks_registrations()) draft_again();
}

MarkRecorder::MarkRecorder(const MarkRecorder& other) noexcept
    : arch_(other.arch_),
      label_(other.label_),
      size_(other.size_),
      facts_(other.facts_),
      mistake_(other.mistake_),
      entry_regions_(other.entry_regions_),
      entries_(other.entries_),
      has_size_(other.has_size_) {
  while (room_ < other.count_ && grow()) continue;
  if (room_ >= other.count_) std::copy_n(other.ops_, count_ = other.count_, ops_);
  if (!other.draft_) return;
  draft_again();
  say_to_draft([&](ProcedureDraft& draft) { draft = *other.draft_; });
}

/// Passes a call on to the draft, if there is one. A draft that lacks memory ends.
template <class Say>
void MarkRecorder::say_to_draft(Say say) noexcept {
  if (!draft_) return;
  try {
    say(*draft_);
  } catch (const std::bad_alloc&) {
    drop_draft();
  }
}

void MarkRecorder::draft_again() noexcept {
  drop_draft();
  try {
    draft_ = new ProcedureDraft(*arch_, {});
  } catch (const std::bad_alloc&) {
    return;  // marks need no memory, and are not checked without
  }
}

void MarkRecorder::drop_draft() noexcept { delete std::exchange(draft_, nullptr); }

void MarkRecorder::draft_directive(std::int32_t when) noexcept {
  if (count_ == 0) return;
  say_to_draft([&](ProcedureDraft& draft) { draft.directive(when, directive_of(ops_[count_ - 1])); });
}

void MarkRecorder::draft_instruction(DraftArguments arguments, const char* name, std::int64_t number,
                                     std::int64_t begin, std::int64_t end) noexcept {
  const std::size_t added = arguments.directives;
  if (*mistake_.what != '\0' || added > count_) return;  // settle() refuses them all
  Idiom idiom(name, {arguments.first, arguments.second}, std::nullopt);
  idiom.has_number = arguments.has_number;
  idiom.number = number;
  say_to_draft([&](ProcedureDraft& draft) {
    std::vector<DraftDirective> directives;
    for (const unw_dyn_op_t& op : std::span(ops_, count_).last(added)) directives.push_back(directive_of(op));
    draft.instruction(idiom, {begin, end}, directives);
  });
}

void MarkRecorder::draft_fact(Fact fact, Instruction at) noexcept {
  say_to_draft([&](ProcedureDraft& draft) {
    if (fact == Fact::remembers) draft.remember();
    if (fact == Fact::restores) draft.restore(at);
    if (fact == Fact::calls) draft.add_call(at);
    if (fact == Fact::ends_without_return) draft.set_ends_without_return();
  });
}

Status MarkRecorder::judge(AddrRange code, std::string_view name) noexcept {
  Status right = Done{};
  say_to_draft([&](ProcedureDraft& draft) {
    draft.set_size(code.size());
    draft.set_personality(facts_.personality);
    draft.set_lsda(facts_.lsda);
    const auto built = draft.build();
    if (built) return;
    const Finding& finding = built.error().decisive();
    functions_above()->tell_mistake(code, name.empty() ? nullptr : std::string(name).c_str(), finding.message, 1);
    const auto offset = static_cast<Addr>(std::max<std::int64_t>(finding.offset, 0));
    if (refuses_mistakes())
      right = Error{finding.code, code.begin + offset, "JITUNWIND_CHECK: build() refuses what the marks say"};
  });
  return right;
}

void MarkRecorder::free_ops() noexcept { give_back(ops_); }

bool MarkRecorder::grow() noexcept {
  void* const memory = allocate(2 * room_ * sizeof(unw_dyn_op_t));
  if (!memory) return refuse(ErrorCode::out_of_memory, 0, "no memory for more directives"), false;
  auto* const larger = static_cast<unw_dyn_op_t*>(memory);
  std::copy_n(ops_, count_, larger);
  if (ops_ != inline_.data()) free_ops();
  ops_ = larger;
  room_ *= 2;
  return true;
}

void MarkRecorder::clear() noexcept {
  count_ = 0;
  label_ = 0;
  facts_ = {};
  mistake_ = {};
  has_size_ = false;
  entries_ = 0;
  if (draft_) draft_again();
}

void MarkRecorder::entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance) noexcept {
  if (count_ != 0) return refuse(ErrorCode::invalid_argument, 0, "entry_state() must come first");
  say_to_draft([&](ProcedureDraft& draft) { draft.entry_state(row, sp_distance); });
  try {
    const auto plan = plan_entry_state(row, *arch_, sp_distance);
    if (!plan) return refuse(plan.error().code, 0, plan.error().what);
    for (const std::vector<DraftDirective>& region : *plan) {
      entry_regions_[entries_++] = static_cast<std::uint16_t>(region.size());
      for (const DraftDirective& d : region) add(d, -1, By::when);
    }
  } catch (const std::bad_alloc&) {
    refuse(ErrorCode::out_of_memory, 0, "no memory for the entry state");
  }
}

void MarkRecorder::entry_state(std::string_view row, std::optional<std::int64_t> sp_distance) noexcept {
  try {
    ExpressionPool pool;
    const auto parsed = parse_row(row, *arch_, pool);
    if (!parsed) return refuse(parsed.error().code, 0, parsed.error().what);
    entry_state(parsed->row, sp_distance);
  } catch (const std::bad_alloc&) {
    refuse(ErrorCode::out_of_memory, 0, "no memory for the entry state");
  }
}

void MarkRecorder::refuse(ErrorCode code, std::int64_t offset, const char* what) noexcept {
  if (*mistake_.what == '\0') mistake_ = {code, static_cast<Addr>(offset), what};
}

void MarkRecorder::refuse_bytes(Instruction at) noexcept {
  if (at.begin >= at.end) return refuse(ErrorCode::e_range, at.begin, "no bytes between begin and end");
  if (at.begin < 0 && at.end > 0) return refuse(ErrorCode::e_when, at.begin, "reaches across the end of the procedure");
  refuse(ErrorCode::e_range, at.begin, "code offset beyond 2 GiB");
}

Status MarkRecorder::settle(std::uint64_t bytes) noexcept {
  if (*mistake_.what != '\0') return mistake_;
  const std::uint64_t unit = arch_->unit;
  if (bytes == 0 || bytes % unit != 0)
    return Error{ErrorCode::e_range, bytes, "size 0, or not a multiple of the instruction unit"};
  if (has_size_ && size_ != bytes) return Error{ErrorCode::e_range, bytes, "described for another size"};
  if (count_ > k_max_ops)
    return Error{ErrorCode::too_deep, count_, "more directives than one region holds; build() makes several"};
  const Arch& arch = *arch_;
  const auto units = static_cast<std::int64_t>(bytes / unit);
  const std::int64_t behind = std::min<std::int64_t>(units, INT32_MAX);
  std::int64_t last_from_start = -1, last_from_end = -1;
  std::int64_t first_from_end = std::numeric_limits<std::int64_t>::max();
  for (unw_dyn_op_t& op : std::span(ops_, count_)) {
    const std::int32_t said = op.when;
    const By by = static_cast<By>(op.qp);
    std::int64_t when = said;
    if (by != By::when) {
      if (unit != 1) {  // a division for each directive takes longer than the rest
        if (when % static_cast<std::int64_t>(unit) != 0)
          return Error{ErrorCode::e_range, place_of(said), "not on the boundaries of the CPU's instructions"};
        when /= static_cast<std::int64_t>(unit);
      }
      when += (by == By::distance_from_end ? units : 0) - 1;
      if (when < 0) return Error{ErrorCode::e_when, place_of(said), "in front of the procedure"};
    }
    if (when >= behind)
      return Error{ErrorCode::e_when, place_of(said),
                   when >= units ? "behind the end of the procedure" : "code offset beyond 2 GiB"};
    if (by == By::distance_from_end)
      first_from_end = std::min(first_from_end, when), last_from_end = std::max(last_from_end, when);
    else
      last_from_start = std::max(last_from_start, when);
    op.when = static_cast<std::int32_t>(when);
    op.qp = _U_QP_TRUE;
    if (!number(op, arch))
      return Error{ErrorCode::e_reg, place_of(said), "no such register, or none that directives can name"};
  }
  insn_count_ = static_cast<std::int32_t>(std::max(last_from_start, last_from_end) + 1);
  // A known size allows both ways of counting in any order.
  if (!has_size_ && last_from_start >= first_from_end)
    return Error{ErrorCode::e_overlap, bytes, "offsets from the end lie in front of offsets from the start"};
  return Done{};
}

}  // namespace jitunwind
