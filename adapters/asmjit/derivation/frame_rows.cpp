#include "jitunwind/adapters/asmjit/derivation/frame_rows_p.h"

namespace jitunwind::derivation {
namespace {

constexpr RegNum k_first_vector = 17;

/// CFA = reg - offset for a register that holds cfa + offset.
std::optional<CfaRule> cfa_from(const FrameState& state, RegNum reg) {
  if (!state.reg(reg).is_cfa_address()) return std::nullopt;
  return CfaRule::at(reg, -state.reg(reg).offset);
}

/// CFA = *(sp + n) - offset for memory that holds cfa + offset.
std::optional<CfaRule> cfa_from_memory(const FrameState& state, const Arch& arch) {
  for (const Slot& s : state.slots())
    if (s.value.is_cfa_address() && s.base == state.sp().base && s.offset >= state.sp().offset)
      return CfaRule::deref(arch.sp, s.offset - state.sp().offset, -s.value.offset);
  return std::nullopt;
}

std::optional<CfaRule> plan_cfa(const FrameState& state, const Arch& arch, CfaBase preferred) {
  // A copy in memory outlives registers: asmjit may assign the stored register to the body.
  if (!state.sp().is_cfa_address())
    if (const auto rule = cfa_from_memory(state, arch)) return rule;
  const RegNum first = preferred == CfaBase::frame_pointer ? arch.fp : arch.sp;
  const RegNum second = preferred == CfaBase::frame_pointer ? arch.sp : arch.fp;
  if (const auto rule = cfa_from(state, first)) return rule;
  if (const auto rule = cfa_from(state, second)) return rule;
  for (RegSet left = state.cfa_registers(); left != 0; left &= left - 1)
    if (first_of(left) < k_first_vector) return cfa_from(state, first_of(left));
  return std::nullopt;
}

/// The slot nearest to the CFA that holds the value of `reg` at entry, at or above SP (or below it).
const Slot* find_slot(const FrameState& state, RegNum reg, bool below_sp) {
  if (state.slots_of(reg) == 0) return nullptr;
  for (const Slot& s : state.slots()) {
    if (!s.value.is_entry(reg) || (s.base != k_cfa_base && s.base != state.sp().base)) continue;
    const bool below = s.base == state.sp().base && s.offset < state.sp().offset;
    if (below == below_sp) return &s;
  }
  return nullptr;
}

RegRule rule_of(const Slot& slot, const FrameState& state, const Arch& arch) {
  if (slot.base == k_cfa_base) return RegRule::at_cfa(slot.offset);
  return RegRule::at_reg(arch.sp, slot.offset - state.sp().offset);
}

std::optional<RegRule> plan_register(const FrameState& state, const Arch& arch, RegNum reg) {
  // SP that may have been raised can be above the slot of a register that the code does not reload from there.
  if ((state.sp().base & k_loose_base) != 0 && state.reg(reg).is_entry(reg)) return RegRule::same();
  if (const Slot* slot = find_slot(state, reg, false)) return rule_of(*slot, state, arch);
  if (state.reg(reg).is_entry(reg)) return RegRule::same();
  for (RegNum r = 0; r < k_first_vector; ++r)
    if (state.reg(r).is_entry(reg)) return RegRule::in_reg(r);
  if (const Slot* slot = find_slot(state, reg, true)) return rule_of(*slot, state, arch);
  return std::nullopt;
}

/// True when the rule gives the caller's value, or no value.
bool proves_rule(const FrameState& state, const Arch& arch, RegNum r, const RegRule& rule) noexcept {
  using Kind = RegRule::Kind;
  const std::uint32_t size = r >= k_first_vector ? 16 : arch.word_size;
  switch (rule.kind) {
    case Kind::undefined:
      return true;
    case Kind::same:
      return state.reg(r).is_entry(r);
    case Kind::at_cfa:
      return state.memory(Value::address(k_cfa_base, 0), rule.offset, size).is_entry(r);
    case Kind::at_reg:
      return rule.reg < k_tracked_registers && state.memory(state.reg(rule.reg), rule.offset, size).is_entry(r);
    case Kind::in_reg:
      return rule.reg < k_tracked_registers && state.reg(rule.reg).is_entry(r);
    default:
      return false;
  }
}

const char* name_of(const Arch& arch, RegNum reg) {
  const RegisterInfo* info = arch.by_dwarf(reg);
  return info ? info->name : "?";
}

}  // namespace

RegSet abi_preserved(const Arch& arch) noexcept {
  const auto of = [](const Arch& any) {
    RegSet set = 0;
    for (const RegisterInfo& r : any.registers)
      if (r.preserved && r.dwarf < k_tracked_registers) set |= set_of(r.dwarf);
    return set;
  };
  static const RegSet of_x86_64 = of(arch::x86_64);
  return &arch == &arch::x86_64 ? of_x86_64 : of(arch);
}

std::string place_text(const FrameState& state, const Arch& arch, RegNum reg) {
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (state.reg(r).is_entry(reg)) return name_of(arch, r);
  for (const Slot& s : state.slots())
    if (s.value.is_entry(reg)) return "[" + value_text(Value::address(s.base, s.offset)) + "]";
  return "no place";
}

/// A cursor has no values of vector registers, so that a value kept in one is lost.
std::string why_not_found(const FrameState& state, const Arch& arch, RegNum reg) {
  for (RegNum r = k_first_vector; r < k_tracked_registers; ++r)
    if (state.reg(r).is_entry(reg))
      return std::string("keeps ") + name_of(arch, reg) + " in " + name_of(arch, r) +
             " alone, where walks cannot read it";
  return {};
}

Result<FrameRow, LostPlace> plan_row(const FrameState& state, const Arch& arch, CfaBase preferred) {
  const auto cfa = plan_cfa(state, arch, preferred);
  if (!cfa)
    return LostPlace{arch.sp, "the distance of SP to the caller's frame is lost, and no register or slot keeps it"};
  FrameRow row;
  row.cfa = *cfa;
  row.ra = arch.ra;
  const RegSet abi = abi_preserved(arch);
  for (RegSet left = (state.preserved() | abi | set_of(arch.ra)) & ~set_of(arch.sp); left != 0; left &= left - 1) {
    const RegNum r = first_of(left);
    const bool may_be_silent = has(abi, r) || r >= k_first_vector;
    if (may_be_silent && state.slots_of(r) == 0 && state.reg(r).is_entry(r)) continue;
    const bool promised = has(state.preserved(), r);
    auto rule = plan_register(state, arch, r);
    if (!rule && r == arch.ra) return LostPlace{r, "the return address is lost"};
    if (!rule && promised) return LostPlace{r, why_not_found(state, arch, r)};
    // The convention of this procedure does not preserve the register.
    if (!rule) rule = RegRule::undefined();
    // A row may omit the rule "same" of a register that the psABI preserves; vector registers have no value to pass on.
    if (rule->kind == RegRule::Kind::same && may_be_silent) continue;
    if (!row.set(r, *rule)) return LostPlace{k_no_reg, "more registers than a row holds"};
  }
  return row;
}

bool proves(const FrameState& state, const Arch& arch, const FrameRow& row) noexcept {
  using Kind = RegRule::Kind;
  const auto is_cfa = [](const Value& v, std::int64_t offset) { return v.is_cfa_address() && v.offset + offset == 0; };
  const Value base = row.cfa.reg < k_tracked_registers ? state.reg(row.cfa.reg) : Value{};
  const bool cfa_right = row.cfa.kind == CfaRule::Kind::offset ? is_cfa(base, row.cfa.offset)
                         : row.cfa.kind == CfaRule::Kind::deref
                             ? is_cfa(state.memory(base, row.cfa.offset, arch.word_size), row.cfa.add)
                             : false;
  if (!cfa_right) return false;

  const RegSet wanted = (state.preserved() & ~set_of(arch.sp)) | set_of(arch.ra);
  const RegSet unless_said = (wanted | abi_preserved(arch)) & ~set_of(arch.sp);
  RegSet silent = unless_said;
  for (const auto& [r, rule] : row.entries()) {
    if (r >= k_tracked_registers) continue;
    silent &= ~set_of(r);
    if (!proves_rule(state, arch, r, rule) || (rule.kind == Kind::undefined && has(wanted, r))) return false;
  }
  for (; silent != 0; silent &= silent - 1)
    if (const RegNum r = first_of(silent); !state.reg(r).is_entry(r)) return false;
  return true;
}

}  // namespace jitunwind::derivation
