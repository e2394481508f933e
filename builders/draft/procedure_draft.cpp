#include "jitunwind/builders/draft/procedure_draft.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "jitunwind/builders/draft/draft_record_p.h"

namespace jitunwind {
namespace {

// insn_count and `when` are 32 bits wide.
constexpr std::int64_t k_max_offset = std::numeric_limits<std::int32_t>::max();

bool too_far(std::int64_t offset) { return offset > k_max_offset || offset < -k_max_offset; }

Expression copied(Expression expression, ExpressionPool& pool) {
  return pool.add({expression.begin(), expression.end()});
}

/// A copy of the row with its expressions in `pool` and with a return address column.
FrameRow owned(const FrameRow& row, const Arch& arch, ExpressionPool& pool) {
  FrameRow own = row;
  if (own.ra == k_no_reg) own.ra = arch.ra;
  if (row.cfa.kind == CfaRule::Kind::expression) own.cfa.expression = copied(row.cfa.expression, pool);
  for (const FrameRow::Entry& e : row.entries()) {
    // set() replaces an existing entry, so that there is always room.
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

void DraftRecord::refuse(ErrorCode code, const std::string& place, const std::string& reason) {
  findings.push_back(finding_of(place, code, reason));
}

DraftRecord::Region& DraftRecord::current() {
  if (regions.empty() || regions.back().entry_state) regions.emplace_back();
  return regions.back();
}

ProcedureDraft::ProcedureDraft(const Arch& arch, std::string_view name) : record_(new Record(arch, name)) {}

ProcedureDraft::ProcedureDraft(const ProcedureDraft& other) : record_(new Record(*other.record_)) {}

ProcedureDraft::~ProcedureDraft() { delete record_; }

const Arch& ProcedureDraft::arch() const noexcept { return *record_->arch; }

void ProcedureDraft::add_call(Instruction at) { record_->calls.push_back(at); }

void ProcedureDraft::set_personality(Addr handler) { record_->personality = handler; }

void ProcedureDraft::set_lsda(Addr lsda) { record_->lsda = lsda; }

void ProcedureDraft::set_gp(Addr gp) { record_->gp = gp; }

void ProcedureDraft::set_ends_without_return() { record_->ends_without_return = true; }

void ProcedureDraft::call_site(Instruction calls, std::int64_t pad) { record_->handlers.call_site(calls, pad); }

void ProcedureDraft::terminates(Instruction calls) { record_->handlers.terminates(calls); }

void ProcedureDraft::catches(const std::type_info* type) { record_->handlers.catches(type); }

void ProcedureDraft::catches_all() { record_->handlers.catches_all(); }

void ProcedureDraft::allows(std::span<const std::type_info* const> types) { record_->handlers.allows(types); }

void ProcedureDraft::cleans_up() { record_->handlers.cleans_up(); }

int ProcedureDraft::selector(const std::type_info* type) { return record_->handlers.selector(type); }

void ProcedureDraft::set_frame_handler(FrameHandler handler) {
  record_->handlers.set_frame_handler(std::move(handler));
}

void ProcedureDraft::open_region(std::int32_t insn_count) {
  if (!record_->regions.empty() && !record_->regions.back().insn_count)
    record_->refuse(ErrorCode::invalid_argument, "region()", "behind directives or instructions that are in no region");
  record_->regions.push_back({.insn_count = insn_count, .entry_state = false, .directives = {}});
}

void ProcedureDraft::set_size(std::uint64_t bytes) {
  if (bytes > std::uint64_t{1} << 62) return record_->refuse(ErrorCode::e_range, "size()", "no procedure is so long");
  record_->size = bytes;
}

void ProcedureDraft::directive(std::int32_t when, const DraftDirective& directive) {
  record_->current().directives.push_back({.directive = directive, .at = {}, .when = when, .raw = {}});
}

void ProcedureDraft::raw(const unw_dyn_op_t& op) {
  record_->current().directives.push_back({.directive = {}, .at = {}, .when = op.when, .raw = op});
}

std::string SaidInstruction::text(const Arch& arch) const {
  std::string text = std::string(idiom.name) + "({" + std::to_string(at.begin) + ", " + std::to_string(at.end) + "}";
  for (const RegNum reg : idiom.regs) {
    const RegisterInfo* const info = arch.by_dwarf(reg);
    if (reg != k_no_reg) text += ", " + (info ? std::string(info->name) : "Reg(" + std::to_string(reg) + ")");
  }
  return text + (idiom.has_number ? ", " + std::to_string(idiom.number) : "") + ")";
}

void ProcedureDraft::instruction(const Idiom& idiom, Instruction at, std::span<const DraftDirective> directives) {
  constexpr std::size_t k_usual = 8;
  if (record_->said.empty()) record_->said.reserve(k_usual);
  record_->said.push_back({idiom, at});
  if (too_far(at.begin) || too_far(at.end))
    return record_->refuse(ErrorCode::e_range, record_->said.back().text(*record_->arch), "code offset beyond 2 GiB");
  const auto said = static_cast<std::uint32_t>(record_->said.size());
  auto& all = record_->current().directives;
  if (all.empty()) all.reserve(k_usual);
  for (const DraftDirective& d : directives) all.push_back({.directive = d, .at = at, .raw = {}, .said = said});
}

void ProcedureDraft::remember() {
  DraftRecord::Region& region = record_->current();
  DraftRecord::Placed label{
      .directive = DraftDirective::label_state(0), .at = {}, .when = -1, .raw = {}, .automatic_label = true};
  label.directive.value = ++record_->remembered;
  if (!region.directives.empty()) {  // after the last directive
    label.at = region.directives.back().at;
    label.when = region.directives.back().when;
  }
  region.directives.push_back(label);
}

void ProcedureDraft::restore(Instruction leaving) {
  if (record_->remembered == 0) return record_->refuse(ErrorCode::e_label, "restore()", "nothing was remembered");
  record_->said.push_back({Idiom("restore", {}, {}), leaving});
  if (too_far(leaving.begin) || too_far(leaving.end))
    return record_->refuse(ErrorCode::e_range, record_->said.back().text(*record_->arch), "code offset beyond 2 GiB");
  DraftRecord::Placed copy{
      .directive = DraftDirective::copy_state(0), .at = leaving, .raw = {}, .automatic_label = true};
  copy.directive.value = record_->remembered;
  copy.said = static_cast<std::uint32_t>(record_->said.size());
  record_->current().directives.push_back(copy);
}

void ProcedureDraft::entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance) {
  if (!record_->regions.empty() && !record_->regions.back().insn_count)
    return record_->refuse(ErrorCode::invalid_argument, "entry_state()", "must come first, or between regions");
  const auto plan = plan_entry_state(row, *record_->arch, sp_distance);
  if (!plan) return record_->refuse(plan.error().code, "entry_state()", plan.error().reason);

  const bool first = record_->regions.empty();
  for (const std::vector<DraftDirective>& directives : *plan) {
    record_->regions.push_back({.insn_count = 0, .entry_state = true, .directives = {}});
    for (const DraftDirective& d : directives)
      record_->regions.back().directives.push_back({.directive = d, .at = {}, .when = 0, .raw = {}});
  }
  if (first) return;
  // The state before these regions belongs to another frame; the entry state starts from the procedure's entry.
  DraftRecord::Placed label{
      .directive = DraftDirective::label_state(0), .at = {}, .when = -1, .raw = {}, .automatic_label = true};
  label.directive.value = ++record_->remembered;
  DraftRecord::Placed copy = label;
  copy.directive.tag = UNW_DYN_COPY_STATE;
  DraftRecord::Region& begin = record_->regions.front();
  begin.directives.insert(begin.directives.begin(), label);
  DraftRecord::Region& entry = record_->regions[record_->regions.size() - plan->size()];
  entry.directives.insert(entry.directives.begin(), copy);
}

void ProcedureDraft::entry_state(std::string_view row, std::optional<std::int64_t> sp_distance) {
  ExpressionPool pool;
  const auto parsed = parse_row(row, *record_->arch, pool);
  if (!parsed) return record_->refuse(parsed.error().code, "entry_state()", parse_error_text(row, parsed.error()));
  entry_state(parsed->row, sp_distance);
}

void ProcedureDraft::row_at(std::int64_t offset, const FrameRow& row) {
  if (too_far(offset)) return record_->refuse(ErrorCode::e_range, "row_at()", "code offset beyond 2 GiB");
  if (record_->row_pools.empty() || record_->row_pools.back().use_count() != 1)
    record_->row_pools.push_back(std::make_shared<DraftRecord::GivenRows>());
  DraftRecord::GivenRows& given = *record_->row_pools.back();
  if (!has_expressions(row)) {
    FrameRow own = row;
    if (own.ra == k_no_reg) own.ra = record_->arch->ra;
    record_->rows.push_back({offset, given.rows.keep(own)});
    return;
  }
  auto pool = std::make_shared<ExpressionPool>();
  record_->rows.push_back({offset, given.rows.keep(owned(row, *record_->arch, *pool))});
  given.expressions.push_back(std::move(pool));
}

void ProcedureDraft::row_at(std::int64_t offset, std::string_view row) {
  ExpressionPool pool;
  const auto parsed = parse_row(row, *record_->arch, pool);
  if (!parsed) return record_->refuse(parsed.error().code, "row_at()", parse_error_text(row, parsed.error()));
  if (parsed->offset)
    return record_->refuse(ErrorCode::invalid_argument, "row_at()", "the row text has an offset of its own");
  row_at(offset, parsed->row);
}

}  // namespace jitunwind
