#include "jitunwind/adapters/asmjit/derivation/frame_description_p.h"

#include <algorithm>
#include <array>

#include "jitunwind/adapters/asmjit/derivation/directive_writer_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_rows_p.h"
#include "jitunwind/builders/described_rows.h"
#include "jitunwind/builders/draft/row_pool_internal.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind::derivation {
namespace {

class Describer {
 public:
  Describer(FrameAnalysis& analysis, const TracedProcedure& procedure, const CodeTrace& trace, const Arch& arch,
            std::optional<std::uint32_t> tail)
      : analysis_(analysis), procedure_(procedure), trace_(trace), arch_(arch), tail_(tail) {}

  Result<Description, Refusal> describe();

 private:
  using Placed = DirectiveWriter::Placed;
  using Boundary = FrameAnalysis::Boundary;

  std::uint32_t size() const { return procedure_.end - procedure_.begin; }
  std::uint32_t offset_of(std::size_t i) const { return trace_.instructions[i].begin - procedure_.begin; }

  /// Registers that hold addresses relative to the CFA at a boundary: value - CFA.
  struct CfaDistances {
    RegSet known = 0;
    std::array<std::int64_t, 17> of;
  };
  static CfaDistances distances_in(const FrameState& state);

  bool plan(CfaBase preferred, Refusal& why);
  void add_step(std::size_t i, const Value& sp, const FrameRow& row, const CfaDistances& before);
  std::optional<Description> with_directives();
  std::optional<Description> with_rows();
  std::optional<Refusal> check_handlers() const;
  void say_handlers(x86_64::Builder& builder) const;
  bool is_proved(const Description& description);
  std::uint32_t tail_begin(const std::vector<Placed>& placed) const;

  FrameAnalysis& analysis_;
  const TracedProcedure& procedure_;
  const CodeTrace& trace_;
  const Arch& arch_;
  const std::optional<std::uint32_t> tail_;
  const FrameState& during_call(const FrameState& before) {
    during_call_ = before;
    during_call_.forget_what_callees_use();
    return during_call_;
  }

  RowPool rows_;
  std::vector<FrameStep> steps_;
  FrameState during_call_;
};

void say(x86_64::Builder& builder, std::int32_t when, const DraftDirective& d) {
  using x86_64::Reg;
  switch (d.tag) {
    case UNW_DYN_ADD:
      builder.add(when, Reg(d.reg), d.value);
      break;
    case UNW_DYN_SPILL_SP_REL:
      builder.spill_sp_rel(when, Reg(d.reg), d.value);
      break;
    case UNW_DYN_SPILL_FP_REL:
      builder.spill_fp_rel(when, Reg(d.reg), d.value);
      break;
    case UNW_DYN_SAVE_REG:
      builder.save_reg(when, Reg(d.reg), Reg(d.saved_in));
      break;
    case UNW_DYN_LABEL_STATE:
      builder.label_state(when, static_cast<unw_word_t>(d.value));
      break;
    case UNW_DYN_COPY_STATE:
      builder.copy_state(when, static_cast<unw_word_t>(d.value));
      break;
    default:
      break;
  }
}

Describer::CfaDistances Describer::distances_in(const FrameState& state) {
  CfaDistances out;
  out.known = state.cfa_registers() & (set_of(out.of.size()) - 1);
  for (RegSet left = out.known; left != 0; left &= left - 1) out.of[first_of(left)] = state.reg(first_of(left)).offset;
  return out;
}

/// The rows of the procedure, one for each change.
bool Describer::plan(CfaBase preferred, Refusal& why) {
  steps_.clear();
  CfaDistances before, here;
  return analysis_.visit(procedure_, [&](const Boundary& at) {
    const std::size_t i = at.instruction;
    const FrameState* state = at.state;
    before = here;
    if (at.changed) here = state ? distances_in(*state) : CfaDistances{};
    if (!state || (!at.changed && !analysis_.calls(i))) return true;
    // The row also serves the callee's caller, so that it must not depend on values that the callee may overwrite.
    if (analysis_.calls(i)) state = &during_call(*state);
    const auto row = plan_row(*state, arch_, preferred);
    if (!row) {
      const LostPlace& lost = row.error();
      why = analysis_.lost_at(at, lost.reg, lost.reason);
      return false;
    }
    add_step(i, state->sp(), *row, before);
    return true;
  });
}

/// `before`: distances before the preceding instruction.
void Describer::add_step(std::size_t i, const Value& sp, const FrameRow& row, const CfaDistances& before) {
  const auto instruction_before = [&](std::size_t k) { return k > procedure_.first ? offset_of(k - 1) : 0; };
  const FrameRow* const kept = rows_.keep(row);
  if (steps_.empty()) return steps_.push_back({offset_of(i), 0, sp, kept});
  const FrameStep last = steps_.back();
  if (last.row == kept && last.sp == sp) return;
  const bool lost_sp = last.sp.is_cfa_address() && !sp.is_cfa_address();
  if (lost_sp && row.cfa.kind == CfaRule::Kind::offset && row.cfa.reg != last.row->cfa.reg &&
      has(before.known, row.cfa.reg) && before.of[row.cfa.reg] == -row.cfa.offset) {
    // The instruction moves SP out of reach. Rows use the other register one boundary earlier, because directives need
    // a frame pointer that was set from an SP in reach.
    FrameStep earlier = last;
    earlier.offset = offset_of(i - 1);
    FrameRow earlier_row = *last.row;
    earlier_row.cfa = row.cfa;
    earlier.row = rows_.keep(earlier_row);
    if (last.offset == earlier.offset)
      steps_.back() = earlier;
    else
      earlier.instruction = instruction_before(i - 1), steps_.push_back(earlier);
  }
  steps_.push_back({offset_of(i), instruction_before(i), sp, kept});
}

/// Begin of the epilogue that ends the procedure; size() if there is none, or if it cannot be placed from the end.
std::uint32_t Describer::tail_begin(const std::vector<Placed>& placed) const {
  std::uint32_t begin = size();
  for (auto d = placed.rbegin(); d != placed.rend() && d->releases; ++d) begin = d->instruction;
  const bool labelled = std::ranges::any_of(placed, [](const Placed& d) {
    return d.directive.tag == UNW_DYN_LABEL_STATE || d.directive.tag == UNW_DYN_COPY_STATE;
  });
  const bool overlaps = std::ranges::any_of(placed, [&](const Placed& d) { return !d.releases && d.offset > begin; });
  // A region at the end cannot be split, so that it must hold all directives.
  const bool too_many = placed.size() > k_max_ops;
  return labelled || overlaps || too_many ? size() : begin;
}

std::optional<Description> Describer::with_directives() {
  DirectiveWriter writer(arch_);
  for (const FrameStep& step : steps_)
    if (!writer.add(step)) return std::nullopt;
  auto builder = x86_64::describe(procedure_.name);
  if (!writer.balanced()) builder.ends_without_return();
  const std::vector<Placed> placed = writer.take();
  const std::uint32_t tail = tail_ ? *tail_ : tail_begin(placed);
  std::uint32_t head = 0;
  for (const Placed& d : placed)
    if (d.offset <= tail) head = std::max(head, d.offset);
  if (!placed.empty()) {
    // The description is for this size if no epilogue ends the procedure.
    if (tail == size()) builder.size(head = size());
    builder.region(static_cast<std::int32_t>(head));
  }
  bool in_tail = false;
  for (const Placed& d : placed) {
    if (d.offset > tail && !in_tail) {
      builder.region(-static_cast<std::int32_t>(size() - tail));
      in_tail = true;
    }
    say(builder, static_cast<std::int32_t>(d.offset) - 1 - static_cast<std::int32_t>(in_tail ? tail : 0), d.directive);
  }
  say_handlers(builder);
  auto built = builder.build();
  if (!built || !is_proved(*built)) return std::nullopt;
  return std::move(*built);
}

std::optional<Description> Describer::with_rows() {
  auto builder = x86_64::describe(procedure_.name);
  builder.size(size());
  for (const FrameStep& step : steps_) builder.row_at(step.offset, *step.row);
  say_handlers(builder);
  auto built = builder.build();
  if (!built || !is_proved(*built)) return std::nullopt;
  return std::move(*built);
}

/// Adds the exception handlers of the procedure. A site belongs to the procedure that it begins in.
void Describer::say_handlers(x86_64::Builder& builder) const {
  const CodePlace begin{procedure_.section, procedure_.begin}, end{procedure_.section, procedure_.end};
  for (const TracedFrameHandler& handler : trace_.frame_handlers)
    if (handler.place >= begin && handler.place < end) return void(builder.handled_by(handler.handler));
  const auto offset = [&](LabelId label) {
    const CodePlace place = analysis_.place_of_label(label);
    // The label is in another section; this offset is outside every procedure.
    return place.section == procedure_.section ? std::int64_t{place.offset} - procedure_.begin : INT32_MIN;
  };
  for (const TracedCallSite& site : trace_.call_sites) {
    if (const CodePlace at = analysis_.place_of_label(site.begin); at < begin || at >= end) continue;
    const Instruction calls{offset(site.begin), offset(site.end)};
    if (site.pad == k_no_label) {
      builder.terminates(calls);
      continue;
    }
    builder.call_site(calls, offset(site.pad));
    for (const auto& say : site.reasons) say(builder);
  }
}

/// Checks the handlers in a builder of their own, so that the refusal has their reason.
std::optional<Refusal> Describer::check_handlers() const {
  auto builder = x86_64::describe();
  say_handlers(builder.size(size()));
  const auto built = builder.build();
  if (built) return std::nullopt;
  std::string reason = built.error().text();
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  return Refusal{{procedure_.section, procedure_.begin}, std::nullopt, reason, {}};
}

/// Compares the description's row at every boundary with the state there.
bool Describer::is_proved(const Description& description) {
  if (!description.check_size(size())) return false;
  std::size_t step = 0;
  FrameRow row;
  bool has_row = false;
  DescribedRows rows(description, size());
  return analysis_.visit(procedure_, [&](const Boundary& at) {
    const std::size_t i = at.instruction;
    const FrameState* state = at.state;
    if (!state) return true;
    // Directives and rows change at the steps only, so that the row is looked up once per step.
    for (; step < steps_.size() && steps_[step].offset <= offset_of(i); ++step) has_row = false;
    const bool proved = has_row && !at.changed;
    if (!has_row && !rows.row(offset_of(i), row)) return false;
    has_row = true;
    // A row that holds during a call also holds before it.
    if (analysis_.calls(i)) return proves(during_call(*state), arch_, row);
    return proved || proves(*state, arch_, row);
  });
}

Result<Description, Refusal> Describer::describe() {
  if (auto wrong = check_handlers()) return *wrong;
  Refusal why;
  for (const CfaBase preferred : {CfaBase::frame_pointer, CfaBase::stack_pointer}) {
    if (!plan(preferred, why)) return why;
    if (auto description = with_directives()) return std::move(*description);
  }
  if (!plan(CfaBase::frame_pointer, why)) return why;
  if (auto description = with_rows()) return std::move(*description);
  return Refusal{{procedure_.section, procedure_.begin}, std::nullopt, "no description says what was derived", {}};
}

}  // namespace

Result<Description, Refusal> describe(FrameAnalysis& analysis, const TracedProcedure& procedure, const CodeTrace& trace,
                                      const Arch& arch, std::optional<std::uint32_t> tail) {
  return Describer(analysis, procedure, trace, arch, tail).describe();
}

}  // namespace jitunwind::derivation
