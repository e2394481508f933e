#include "jitunwind/unwind_core/check/row_claims_p.h"

#include <algorithm>

#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/rows/dwarf_expression.h"

namespace jitunwind::check_code {
namespace {

using Kind = RegRule::Kind;

/// Larger numbers are those of no frame.
bool fits(std::int64_t number) {
  constexpr std::int64_t k_most = std::int64_t{1} << 28;
  return number >= -k_most && number <= k_most;
}

Judgement cannot_tell(CannotTell why, RegNum reg = k_no_reg) { return {Verdict::cannot_tell, why, reg}; }
Judgement unknown_value(const Value& value, RegNum reg) {
  return cannot_tell(value.differs ? CannotTell::paths_differ : CannotTell::stack_pointer, reg);
}

}  // namespace

std::uint32_t ClaimedRows::index_at(std::uint32_t offset) const noexcept {
  const auto behind = std::ranges::upper_bound(rows_, offset, {}, &RowClaims::begin);
  return static_cast<std::uint32_t>(behind - rows_.begin()) - 1;
}

bool ClaimedRows::are_equal(std::uint32_t a, std::uint32_t b) const noexcept {
  const RowClaims &one = rows_[a], &other = rows_[b];
  return a == b || (one.why == other.why && one.cfa == other.cfa && one.cfa_base == other.cfa_base &&
                    one.cfa_offset == other.cfa_offset && one.cfa_add == other.cfa_add &&
                    one.signature == other.signature && std::ranges::equal(claims_of(one), claims_of(other)));
}

void ClaimedRows::read(const RowAt& rows, Addr up_to) {
  const auto size = static_cast<std::uint32_t>(code_.size());
  FrameRow row;
  for (std::uint32_t at = rows_.empty() ? 0 : rows_.back().end; at < up_to;) {
    const Addr address = code_.begin + at;
    row.range = {};
    const Found found = rows(address, row);
    RowClaims claims{.begin = at, .end = at + 1, .why = CannotTell::no_row};
    if (!found) {
      claims.why = CannotTell::broken_row;
      claims.end = size;
    } else if (row.range.contains(address)) {
      claims.end = static_cast<std::uint32_t>(std::min(row.range.end, code_.end) - code_.begin);
    }
    const bool by_expression = found && *found && row.cfa.kind == CfaRule::Kind::expression;
    has_expression_ |= by_expression;
    claims.is_of_linkage = by_expression && replace_expression(row, address);
    if (claims.is_of_linkage) claims.end = static_cast<std::uint32_t>(row.range.end - code_.begin);
    claims.first = static_cast<std::uint32_t>(claims_.size());
    if (found && *found) add(row, claims);
    claims.count = static_cast<std::uint32_t>(claims_.size()) - claims.first;
    claims.uses = uses(claims);
    at = claims.end;
    const bool continues = !rows_.empty() && rows_.back().why == claims.why && claims.why != CannotTell::none;
    if (continues)
      rows_.back().end = claims.end;
    else
      rows_.push_back(claims);
  }
}

/// Linkage tables have one row, whose CFA is at a distance from SP that depends on the pc. The part of the row with
/// one distance is a row by itself.
bool ClaimedRows::replace_expression(FrameRow& row, Addr at) const {
  constexpr Addr k_most = Addr{1} << 18;
  const Result<std::int64_t> distance = distance_by(row.cfa.expression, at);
  if (!distance || row.range.size() > k_most) return false;
  Addr end = at + 1;
  for (; end < row.range.end && end < code_.end; ++end)
    if (const auto next = distance_by(row.cfa.expression, end); !next || *next != *distance) break;
  row.range = {at, end};
  row.cfa = CfaRule::at(machine_.arch.sp, *distance);
  return true;
}

/// Error: the expression is not SP plus a number that SP and memory have no part in.
Result<std::int64_t> ClaimedRows::distance_by(Expression expression, Addr at) const {
  const Arch& arch = machine_.arch;
  const BytesMemory memory({});
  MemoryWindow window;
  std::int64_t distance = 0;
  for (const Addr sp : {Addr{0x7f00'0000'0000}, Addr{0x7f12'3456'7ff8}}) {
    RegisterFile registers;
    registers.set(arch.by_dwarf(arch.sp)->column, sp);
    registers.set(arch.by_dwarf(arch.pc)->column, at);
    const Result<std::uint64_t> value = evaluate(expression, {arch, registers, memory, window, std::nullopt});
    if (!value) return value.error();
    const auto one = static_cast<std::int64_t>(*value - sp);
    if (sp != Addr{0x7f00'0000'0000} && one != distance)
      return Error{ErrorCode::invalid_argument, at, "SP has another part in it"};
    distance = one;
  }
  return distance;
}

void ClaimedRows::add(const FrameRow& row, RowClaims& out) {
  const Arch& arch = machine_.arch;
  out.why = CannotTell::none;
  out.cfa_base = machine_.place(row.cfa.reg);
  out.cfa_offset = static_cast<std::int32_t>(row.cfa.offset);
  out.cfa_add = static_cast<std::int32_t>(row.cfa.add);
  const bool is_simple = out.cfa_base != k_no_place && fits(row.cfa.offset) && fits(row.cfa.add);
  if (is_simple && row.cfa.kind == CfaRule::Kind::offset) out.cfa = RowClaims::Cfa::offset;
  if (is_simple && row.cfa.kind == CfaRule::Kind::deref) out.cfa = RowClaims::Cfa::deref;
  const RegRule sp = row.rule(arch.sp);
  if (sp.kind != Kind::unspecified && !(sp == RegRule::is_cfa(arch.caller_sp_bias))) out.why = CannotTell::other_frame;
  const RegNum ra = row.ra == k_no_reg ? arch.ra : row.ra;
  out.is_outermost = row.rule(ra).kind == Kind::undefined;
  if (arch.sign_state != k_no_reg) {
    const RegRule state = row.rule(arch.sign_state);
    if (state.kind == Kind::constant && (state.offset & 1) != 0) out.signature = CodeValues::Signature::made;
  }
  for (const RegisterInfo& reg : arch.registers) {
    const Place place = machine_.place(reg.dwarf);
    if (place == k_no_place || place == machine_.sp) continue;
    RegRule rule = row.rule(reg.dwarf);
    if (reg.dwarf == arch.ra && ra != arch.ra) {  // the return address is in another register, which may be saved
      rule = row.rule(ra);
      if (rule.kind == Kind::unspecified || rule.kind == Kind::same) rule = RegRule::in_reg(ra);
    }
    const bool is_owed = reg.dwarf == arch.ra || (machine_.preserved >> place & 1) != 0;
    if (is_owed || rule.kind != Kind::unspecified) add_register(reg.dwarf, rule);
  }
}

std::uint32_t ClaimedRows::uses(const RowClaims& row) const noexcept {
  const auto bit = [](Place place) { return place == k_no_place ? 0 : std::uint32_t{1} << place; };
  std::uint32_t used = bit(machine_.sp) | bit(row.cfa_base);
  for (const RegisterClaim& claim : claims_of(row))
    used |= bit(claim.base) | (claim.kind == Kind::same ? bit(claim.place) : 0);
  return used;
}

void ClaimedRows::add_register(RegNum reg, const RegRule& rule) {
  if (rule.kind == Kind::undefined) return;
  RegisterClaim claim{.reg = reg, .place = machine_.place(reg), .kind = rule.kind};
  if (rule.kind == Kind::unspecified) claim.kind = Kind::same;
  const bool has_base = rule.kind == Kind::in_reg || rule.kind == Kind::at_reg || rule.kind == Kind::is_reg;
  if (has_base) claim.base = machine_.place(rule.reg);
  if (!rule.has_expression()) claim.offset = static_cast<std::int32_t>(rule.offset);
  if ((has_base && claim.base == k_no_place) || (!rule.has_expression() && !fits(rule.offset)))
    claim.kind = Kind::is_expression;
  claims_.push_back(claim);
}

Judgement ClaimedRows::judge_cfa(const RowClaims& row, const CodeValues& values) const noexcept {
  const RegNum sp = machine_.arch.sp;
  if (row.cfa == RowClaims::Cfa::not_followed) return cannot_tell(CannotTell::expression, sp);
  Value value = values.reg(row.cfa_base);
  if (row.cfa == RowClaims::Cfa::deref) value = values.memory(value, row.cfa_offset);
  const std::int32_t distance = row.cfa == RowClaims::Cfa::deref ? row.cfa_add : row.cfa_offset;
  if (value.is_cfa(-std::int64_t{distance})) return {};
  if (value.kind == Value::Kind::unknown || value.is_made()) return unknown_value(value, sp);
  return {Verdict::disagrees, CannotTell::none, sp, value};
}

/// Returns the value in the place that the claim names.
Value ClaimedRows::place_of_claim(const RegisterClaim& claim, const CodeValues& values) const noexcept {
  switch (claim.kind) {
    case Kind::same:
      return values.reg(claim.place);
    case Kind::in_reg:
      return values.reg(claim.base);
    case Kind::at_cfa:
      return values.memory(Value::address(Value::Base::cfa, claim.offset), 0);
    default:
      return values.memory(values.reg(claim.base), claim.offset);
  }
}

Judgement ClaimedRows::judge_register(const RegisterClaim& claim, const CodeValues& values) const noexcept {
  const bool is_followed = claim.kind == Kind::same || claim.kind == Kind::in_reg || claim.kind == Kind::at_cfa ||
                           claim.kind == Kind::at_reg;
  if (!is_followed) return cannot_tell(CannotTell::expression, claim.reg);
  const Value value = place_of_claim(claim, values);
  if (value.is_entry(claim.place)) return {};
  const bool in_memory = claim.kind == Kind::at_cfa || claim.kind == Kind::at_reg;
  const bool may_be_elsewhere = value.kind == Value::Kind::other
                                    ? values.is_scattered(claim.place)
                                    : value.kind == Value::Kind::entry && values.is_scattered(value.reg);
  const Value pushed = Value::address(Value::Base::cfa, 0).plus(machine_.arch.entry_ra);
  const bool is_pushed = claim.place == machine_.ra && machine_.arch.calls_push();
  if (in_memory && is_pushed && values.memory(pushed, 0).is_entry(claim.place))
    return {Verdict::disagrees, CannotTell::none, claim.reg, {}};
  if (in_memory && may_be_elsewhere) return unknown_value(Value::unknown(), claim.reg);
  if (value.kind == Value::Kind::unknown) return unknown_value(value, claim.reg);
  return {Verdict::disagrees, CannotTell::none, claim.reg, value};
}

Judgement ClaimedRows::judge(const RowClaims& row, const CodeValues& values) const noexcept {
  if (row.why != CannotTell::none) return cannot_tell(row.why);
  if (row.is_outermost) return {};
  Judgement worst = judge_cfa(row, values);
  const bool has_cfa = worst.verdict == Verdict::agrees;
  const auto consider = [&](const Judgement& judgement) {
    const bool is_second = judgement.verdict == Verdict::disagrees && worst.verdict == Verdict::disagrees;
    if (is_second) worst.also |= machine_.bit_of(judgement.reg);
    if (judgement.verdict > worst.verdict) worst = judgement;
  };
  if (machine_.arch.sign_state != k_no_reg && row.signature != values.signature()) {
    if (values.signature() == CodeValues::Signature::unknown)
      consider(cannot_tell(CannotTell::paths_differ, machine_.arch.sign_state));
    else
      consider({Verdict::disagrees, CannotTell::none, machine_.arch.sign_state, {}});
  }
  for (const RegisterClaim& claim : claims_of(row)) {
    if (claim.kind == Kind::at_cfa && !has_cfa) continue;  // it counts from the row's CFA, not from the true one
    consider(judge_register(claim, values));
  }
  const bool is_by_sp = worst.reg != machine_.arch.sp || row.cfa_base == machine_.sp || !worst.seen.is_address();
  if (worst.verdict == Verdict::disagrees && values.is_doubtful() && is_by_sp)
    return unknown_value(Value::unknown(), worst.reg);
  return worst;
}

CodeValues ClaimedRows::values_of(const RowClaims& row) const noexcept {
  CodeValues values = CodeValues::none();
  const auto at_cfa = [](std::int32_t offset) { return Value::address(Value::Base::cfa, offset); };
  values.set_signature(row.signature);
  if (row.cfa == RowClaims::Cfa::offset) values.put(row.cfa_base, at_cfa(-row.cfa_offset));
  if (row.cfa == RowClaims::Cfa::deref) {
    const Value base = Value::address(Value::Base::made, 0);
    values.put(row.cfa_base, base);
    values.store(base.plus(row.cfa_offset), machine_.word, at_cfa(-row.cfa_add));
  }
  for (const RegisterClaim& claim : claims_of(row)) {
    const Value value = Value::entry(claim.place);
    if (claim.kind == Kind::same) values.put(claim.place, value);
    if (claim.kind == Kind::in_reg) values.put(claim.base, value);
    const bool is_pushed = claim.place == machine_.ra && machine_.arch.calls_push();  // whatever the row says of it
    if (claim.kind == Kind::at_cfa)
      values.store(at_cfa(is_pushed ? machine_.arch.entry_ra : claim.offset), machine_.word, value);
    if (claim.kind == Kind::at_reg) values.store(values.reg(claim.base).plus(claim.offset), machine_.word, value);
  }
  return values;
}

bool ClaimedRows::is_entry_row(const RowClaims& row) const noexcept {
  return judge(row, CodeValues::at_entry(machine_)).verdict == Verdict::agrees;
}

}  // namespace jitunwind::check_code
