#include "jitunwind/builders/draft/procedure_draft.h"

#include <algorithm>
#include <limits>

#include "jitunwind/builders/draft/entry_state_p.h"
#include "jitunwind/builders/draft/finding_p.h"

namespace jitunwind {
namespace {

// insn_count and `when` are 32 bits wide.
constexpr std::int64_t k_max_offset = std::numeric_limits<std::int32_t>::max();

bool too_far(std::int64_t offset) { return offset > k_max_offset || offset < -k_max_offset; }

Expression copied(Expression expression, ExpressionPool& pool) {
  return pool.add({expression.begin(), expression.end()});
}

/// The same row with its expressions in `pool` and a return address column.
FrameRow owned(const FrameRow& row, const Arch& arch, ExpressionPool& pool) {
  FrameRow own = row;
  if (own.ra == k_no_reg) own.ra = arch.ra;
  if (row.cfa.kind == CfaRule::Kind::expression) own.cfa.expression = copied(row.cfa.expression, pool);
  for (const FrameRow::Entry& e : row.entries()) {
    // Replaces an entry that is there: there is always room.
    if (e.rule.kind == RegRule::Kind::at_expression)
      (void)own.set(e.reg, RegRule::at(copied(e.rule.expression(), pool)));
    if (e.rule.kind == RegRule::Kind::is_expression)
      (void)own.set(e.reg, RegRule::is(copied(e.rule.expression(), pool)));
  }
  return own;
}

bool has_expressions(const FrameRow& row) {
  return row.cfa.kind == CfaRule::Kind::expression ||
         std::ranges::any_of(row.entries(), [](const FrameRow::Entry& e) { return e.rule.has_expression(); });
}

std::string parse_error_text(std::string_view text, const Error& error) {
  return "row text \"" + std::string(text) + "\", character " + std::to_string(error.at) + ": " + error.what;
}

}  // namespace

bool DraftDirective::releases_stack(const Arch& arch) const noexcept {
  if (tag == UNW_DYN_SAVE_REG) return saved_in == arch.sp;
  return tag == UNW_DYN_ADD && reg == arch.sp && value > 0;
}

ProcedureDraft::ProcedureDraft(const Arch& arch, std::string_view name) : arch_(&arch), name_(name) {}

void ProcedureDraft::refuse(ErrorCode code, const std::string& place, const std::string& reason) {
  findings_.push_back(finding_of(place, code, reason));
}

/// Where the next directive goes.
ProcedureDraft::Region& ProcedureDraft::current() {
  if (regions_.empty() || regions_.back().entry_state) regions_.emplace_back();
  return regions_.back();
}

void ProcedureDraft::open_region(std::int32_t insn_count) {
  if (!regions_.empty() && !regions_.back().insn_count)
    refuse(ErrorCode::invalid_argument, "region()", "behind directives or instructions that are in no region");
  regions_.push_back({.insn_count = insn_count, .entry_state = false, .directives = {}});
}

void ProcedureDraft::set_size(std::uint64_t bytes) {
  if (bytes > std::uint64_t{1} << 62) return refuse(ErrorCode::e_range, "size()", "no procedure is so long");
  size_ = bytes;
}

void ProcedureDraft::directive(std::int32_t when, const DraftDirective& directive) {
  current().directives.push_back({.directive = directive, .at = {}, .when = when, .raw = {}});
}

void ProcedureDraft::raw(const unw_dyn_op_t& op) {
  current().directives.push_back({.directive = {}, .at = {}, .when = op.when, .raw = op});
}

std::string SaidInstruction::text(const Arch& arch) const {
  std::string text = std::string(idiom.name) + "({" + std::to_string(at.begin) + ", " + std::to_string(at.end) + "}";
  for (const RegNum reg : idiom.regs) {
    const RegisterInfo* const info = arch.by_dwarf(reg);
    if (reg != k_no_reg) text += ", " + (info ? std::string(info->name) : "Reg(" + std::to_string(reg) + ")");
  }
  return text + (idiom.has_number ? ", " + std::to_string(idiom.number) : "") + ")";
}

void ProcedureDraft::instruction(const Idiom& idiom, Instruction at, std::initializer_list<DraftDirective> directives) {
  said_.push_back({idiom, at});
  if (too_far(at.begin) || too_far(at.end))
    return refuse(ErrorCode::e_range, said_.back().text(*arch_), "code offset beyond 2 GiB");
  const auto said = static_cast<std::uint32_t>(said_.size());
  for (const DraftDirective& d : directives)
    current().directives.push_back({.directive = d, .at = at, .raw = {}, .said = said});
}

void ProcedureDraft::remember() {
  Region& region = current();
  Placed label{.directive = DraftDirective::label_state(0), .at = {}, .when = -1, .raw = {}, .automatic_label = true};
  label.directive.value = ++remembered_;
  if (!region.directives.empty()) {  // behind what was said last
    label.at = region.directives.back().at;
    label.when = region.directives.back().when;
  }
  region.directives.push_back(label);
}

void ProcedureDraft::restore(Instruction leaving) {
  if (remembered_ == 0) return refuse(ErrorCode::e_label, "restore()", "nothing was remembered");
  said_.push_back({Idiom("restore", {}, {}), leaving});
  if (too_far(leaving.begin) || too_far(leaving.end))
    return refuse(ErrorCode::e_range, said_.back().text(*arch_), "code offset beyond 2 GiB");
  Placed copy{.directive = DraftDirective::copy_state(0), .at = leaving, .raw = {}, .automatic_label = true};
  copy.directive.value = remembered_;
  copy.said = static_cast<std::uint32_t>(said_.size());
  current().directives.push_back(copy);
}

void ProcedureDraft::entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance) {
  if (!regions_.empty() && !regions_.back().insn_count)
    return refuse(ErrorCode::invalid_argument, "entry_state()", "must come first, or between regions");
  const auto plan = plan_entry_state(row, *arch_, sp_distance);
  if (!plan) return refuse(plan.error().code, "entry_state()", plan.error().reason);

  const bool first = regions_.empty();
  for (const std::vector<DraftDirective>& directives : *plan) {
    regions_.push_back({.insn_count = 0, .entry_state = true, .directives = {}});
    for (const DraftDirective& d : directives)
      regions_.back().directives.push_back({.directive = d, .at = {}, .when = 0, .raw = {}});
  }
  if (first) return;
  // The state in front of these regions is another frame's: begin from the procedure's entry.
  Placed label{.directive = DraftDirective::label_state(0), .at = {}, .when = -1, .raw = {}, .automatic_label = true};
  label.directive.value = ++remembered_;
  Placed copy = label;
  copy.directive.tag = UNW_DYN_COPY_STATE;
  Region& begin = regions_.front();
  begin.directives.insert(begin.directives.begin(), label);
  Region& entry = regions_[regions_.size() - plan->size()];
  entry.directives.insert(entry.directives.begin(), copy);
}

void ProcedureDraft::entry_state(std::string_view row, std::optional<std::int64_t> sp_distance) {
  ExpressionPool pool;
  const auto parsed = parse_row(row, *arch_, pool);
  if (!parsed) return refuse(parsed.error().code, "entry_state()", parse_error_text(row, parsed.error()));
  entry_state(parsed->row, sp_distance);
}

void ProcedureDraft::row_at(std::int64_t offset, const FrameRow& row) {
  if (too_far(offset)) return refuse(ErrorCode::e_range, "row_at()", "code offset beyond 2 GiB");
  if (row_pools_.empty() || row_pools_.back().use_count() != 1) row_pools_.push_back(std::make_shared<GivenRows>());
  GivenRows& given = *row_pools_.back();
  if (!has_expressions(row)) {
    FrameRow own = row;
    if (own.ra == k_no_reg) own.ra = arch_->ra;
    rows_.push_back({offset, given.rows.keep(own)});
    return;
  }
  auto pool = std::make_shared<ExpressionPool>();
  rows_.push_back({offset, given.rows.keep(owned(row, *arch_, *pool))});
  given.expressions.push_back(std::move(pool));
}

void ProcedureDraft::row_at(std::int64_t offset, std::string_view row) {
  ExpressionPool pool;
  const auto parsed = parse_row(row, *arch_, pool);
  if (!parsed) return refuse(parsed.error().code, "row_at()", parse_error_text(row, parsed.error()));
  if (parsed->offset) return refuse(ErrorCode::invalid_argument, "row_at()", "the row text has an offset of its own");
  row_at(offset, parsed->row);
}

}  // namespace jitunwind
