#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

#include <algorithm>
#include <array>
#include <bit>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

namespace jitunwind::derivation {
namespace {

namespace v = asmjit_version;
namespace Inst = ::asmjit::x86::Inst;
using ::asmjit::Operand_;
using ::asmjit::RegType;
using Kind = Effect::Kind;

constexpr RegNum k_rax = 0, k_rdx = 1, k_rcx = 2, k_rbx = 3, k_rsi = 4, k_rdi = 5, k_rbp = 6, k_rsp = 7, k_r11 = 11;

bool is_gp16(const Operand_& op) { return v::is_reg(op) && v::reg_type(op) == RegType::kGp16; }
bool is_gp8(const Operand_& op) {
  return v::is_gp(op) && (v::reg_type(op) == RegType::kGp8Lo || v::reg_type(op) == RegType::kGp8Hi);
}
bool is_xmm(const Operand_& op) { return v::is_reg(op) && v::reg_type(op) == RegType::kVec128 && op.id() < 16; }
bool is_vector(const Operand_& op) { return v::is_vec(op) && op.id() < 16; }
RegNum general(const Operand_& op) { return dwarf_of(op.id()); }
RegNum vector(const Operand_& op) { return vector_register(op.id()); }

bool moves_16_bytes(std::uint32_t id) {
  switch (id) {
    case Inst::kIdMovaps:
    case Inst::kIdMovups:
    case Inst::kIdMovapd:
    case Inst::kIdMovupd:
    case Inst::kIdMovdqa:
    case Inst::kIdMovdqu:
    case Inst::kIdVmovaps:
    case Inst::kIdVmovups:
    case Inst::kIdVmovapd:
    case Inst::kIdVmovupd:
    case Inst::kIdVmovdqa:
    case Inst::kIdVmovdqu:
      return true;
    default:
      return false;
  }
}

RegSet written_implicitly(std::uint32_t instruction);

/// Translates one instruction.
class Translation {
 public:
  Translation(const ::asmjit::BaseInst& instruction, std::span<const Operand_> operands, std::vector<Effect>& out)
      : inst_(instruction), id_(v::instruction_id(instruction)), ops_(operands), out_(out) {}

  void run() {
    const bool may_flow = has(implicit_changes()[id_], k_rsp);
    if (!(may_flow && stack_or_flow()) && !move() && !arithmetic()) anything();
  }
  bool stack_or_flow() {
    Effect one;
    if (!flow_effect(id_, written_implicitly(id_), ops_, one)) return stack_instruction() || control_flow();
    return say(one), true;
  }

 private:
  const Operand_& op(std::size_t i) const { return ops_[i]; }
  bool has_op(std::size_t i) const { return i < ops_.size() && !v::is_none(ops_[i]); }

  void say(Effect e) { out_.push_back(e); }
  void copy(RegNum to, RegNum from, std::int64_t plus) {
    say({.kind = Kind::copy, .reg = to, .base = from, .value = plus});
  }
  void push(RegNum reg, std::int64_t bytes) { say({.kind = Kind::push, .reg = reg, .value = bytes}); }
  void pop(RegNum reg, std::int64_t bytes) { say({.kind = Kind::pop, .reg = reg, .value = bytes}); }
  void clobber(RegSet set) {
    if (has(set, k_rsp)) say({.kind = Kind::sp_unknown});
    if (set != 0) say({.kind = Kind::clobber, .set = set});
  }
  void store(const v::MemoryOperand& memory, RegNum reg, std::uint32_t size) {
    if (memory.plain_base)
      say({.kind = Kind::store, .reg = reg, .base = dwarf_of(memory.base), .size = size, .value = memory.offset});
  }

  bool stack_instruction();
  void push_instruction();
  void pop_instruction();
  void enter_instruction();
  bool control_flow();
  void jump_instruction(bool conditional);
  bool move();
  bool move_low_half();
  bool move_vector(std::uint32_t size);
  void load_address();
  bool arithmetic();
  void anything();

  const ::asmjit::BaseInst& inst_;
  const std::uint32_t id_;
  std::span<const Operand_> ops_;
  std::vector<Effect>& out_;
};

bool Translation::stack_instruction() {
  switch (id_) {
    case Inst::kIdPush:
      return push_instruction(), true;
    case Inst::kIdPop:
      return pop_instruction(), true;
    case Inst::kIdPushf:
      return push(k_no_reg, 2), true;
    case Inst::kIdPushfq:
      return push(k_no_reg, 8), true;
    case Inst::kIdPopf:
      return pop(k_no_reg, 2), true;
    case Inst::kIdPopfq:
      return pop(k_no_reg, 8), true;
    case Inst::kIdLeave:
      copy(k_rsp, k_rbp, 0);
      return pop(k_rbp, 8), true;
    case Inst::kIdEnter:
      return enter_instruction(), true;
    case Inst::kIdPushfd:
    case Inst::kIdPopfd:
    case Inst::kIdPusha:
    case Inst::kIdPushad:
    case Inst::kIdPopa:
    case Inst::kIdPopad:
#if JITUNWIND_ASMJIT_SNAKE_CASE
    case Inst::kIdPushw:
#endif
      return say({.kind = Kind::sp_unknown}), true;
    default:
      return false;
  }
}

void Translation::push_instruction() {
  // Operands of 16 bits push 16 bits; all others 64 (Intel SDM, PUSH, 64-bit mode).
  const bool is_memory = v::is_mem(op(0));
  const v::MemoryOperand from = is_memory ? v::memory_operand(op(0)) : v::MemoryOperand{};
  const bool narrow = is_gp16(op(0)) || from.size == 2;
  if (from.plain_base && !narrow)
    return say({.kind = Kind::push_memory, .base = dwarf_of(from.base), .value = from.offset});
  push(is_gp64(op(0)) ? general(op(0)) : k_no_reg, narrow ? 2 : 8);
}

void Translation::pop_instruction() {
  const bool narrow = is_gp16(op(0)) || (v::is_mem(op(0)) && v::memory_operand(op(0)).size == 2);
  pop(is_gp64(op(0)) ? general(op(0)) : k_no_reg, narrow ? 2 : 8);
  // The address of a destination in memory is computed after SP has moved (Intel SDM, POP).
  if (v::is_mem(op(0))) store(v::memory_operand(op(0)), k_no_reg, narrow ? 2 : 8);
  if (is_gp16(op(0))) clobber(set_of(general(op(0))));
}

void Translation::enter_instruction() {
  if (!has_op(1) || !v::is_imm(op(0)) || !v::is_imm(op(1))) return say({.kind = Kind::sp_unknown});
  push(k_rbp, 8);
  // A nested ENTER copies the pointers to the enclosing frames, and adds its own (Intel SDM, ENTER).
  const std::int64_t level = v::imm_value(op(1)) % 32;
  for (std::int64_t i = 0; i < level; ++i) push(k_no_reg, 8);
  copy(k_rbp, k_rsp, 8 * level);
  copy(k_rsp, k_rsp, -(v::imm_value(op(0)) & 0xffff));
}

bool Translation::control_flow() {
  switch (id_) {
    case Inst::kIdRetf:
    case Inst::kIdIret:
    case Inst::kIdIretd:
    case Inst::kIdIretq:
    case Inst::kIdSysret:
    case Inst::kIdSysretq:
    case Inst::kIdSysexit:
    case Inst::kIdSysexitq:
      return say({.kind = Kind::cannot_return}), true;
    case Inst::kIdXbegin:
      return jump_instruction(true), true;
    case Inst::kIdUd0:
    case Inst::kIdUd1:
    case Inst::kIdUd2:
    case Inst::kIdHlt:
      return say({.kind = Kind::trap}), true;
    default:
      break;
  }
  switch (v::control_flow(id_)) {
    case ::asmjit::InstControlFlow::kReturn:
      say({.kind = Kind::ret, .value = has_op(0) && v::is_imm(op(0)) ? v::imm_value(op(0)) & 0xffff : 0});
      return true;
    case ::asmjit::InstControlFlow::kJump:
      return jump_instruction(false), true;
    case ::asmjit::InstControlFlow::kBranch:
      return jump_instruction(true), true;
    default:
      return false;
  }
}

void Translation::jump_instruction(bool conditional) {
  // The explicit form of jecxz and loop has the counter before the target.
  const std::size_t last = has_op(1) ? 1 : 0;
  clobber(written_implicitly(id_));
  Effect jump{.kind = conditional ? Kind::branch_elsewhere : Kind::jump_elsewhere, .value = Effect::any};
  if (has_op(last) && v::is_label(op(last))) {  // not a common jump: it counts, or begins a transaction
    jump.kind = Kind::branch;
    jump.label = op(last).id();
  } else if (has_op(last) && !v::is_imm(op(last))) {
    jump.kind = Kind::jump_indirect;
    if (is_gp64(op(last))) jump.reg = general(op(last));
    if (v::is_mem(op(last))) jump.label = v::memory_operand(op(last)).label;
  }
  say(jump);
}

bool Translation::move() {
  if (Effect one; sum_effect(id_, ops_, one)) return one.kind == Kind::clobber ? clobber(one.set) : say(one), true;
  if (id_ == Inst::kIdLea && has_op(1) && is_gp64(op(0)) && v::is_mem(op(1))) return load_address(), true;
  if (id_ == Inst::kIdXchg && has_op(1) && is_gp64(op(0)) && is_gp64(op(1)))
    return say({.kind = Kind::exchange, .reg = general(op(0)), .base = general(op(1))}), true;
  const bool moves_8_bytes = id_ == Inst::kIdMovq || id_ == Inst::kIdVmovq;
  if (moves_8_bytes && has_op(1) && move_low_half()) return true;
  return moves_16_bytes(id_) && has_op(1) && move_vector(16);
}

void Translation::load_address() {
  const v::MemoryOperand from = v::memory_operand(op(1));
  const RegNum to = general(op(0));
  if (from.plain_base) return copy(to, dwarf_of(from.base), from.offset);
  if (to == k_rsp && from.is_indexed && dwarf_of(from.base) == k_rsp) return say({.kind = Kind::raise_unknown});
  if (from.label != k_no_label && !from.has_index && from.offset == 0 && to != k_rsp)
    return say({.kind = Kind::address_of, .reg = to, .label = from.label});
  clobber(set_of(to));
}

bool Translation::move_low_half() {
  const auto number = [](const Operand_& op) { return is_gp64(op) ? general(op) : vector(op); };
  const auto holds = [](const Operand_& op) { return is_gp64(op) || is_xmm(op); };
  if (!holds(op(0)) || !holds(op(1))) return move_vector(8);
  return copy(number(op(0)), number(op(1)), 0), true;
}

bool Translation::move_vector(std::uint32_t size) {
  if (v::is_mem(op(0)) && is_xmm(op(1))) return store(v::memory_operand(op(0)), vector(op(1)), size), true;
  if (!is_xmm(op(0)) || !v::is_mem(op(1))) return false;
  const v::MemoryOperand from = v::memory_operand(op(1));
  const RegNum to = vector(op(0));
  if (from.plain_base)
    say({.kind = Kind::load, .reg = to, .base = dwarf_of(from.base), .size = size, .value = from.offset});
  else
    clobber(set_of(to));
  return true;
}

bool Translation::arithmetic() {
  if (!has_op(0) || !is_gp64(op(0))) return false;
  const RegNum reg = general(op(0));
  const bool immediate = has_op(1) && v::is_imm(op(1));
  const RegNum amount = has_op(1) && is_gp64(op(1)) ? general(op(1)) : k_no_reg;
  switch (id_) {
    case Inst::kIdCmp:
      if (amount == k_no_reg || (reg == k_rsp) == (amount == k_rsp)) return false;
      return say({.kind = Kind::compare, .reg = k_rsp, .base = reg == k_rsp ? amount : reg}), true;
    case Inst::kIdInc:
      return copy(reg, reg, 1), true;
    case Inst::kIdDec:
      return copy(reg, reg, -1), true;
    case Inst::kIdAdd:
      if (reg != k_rsp) return false;
      return say({.kind = Kind::raise_unknown, .reg = amount}), true;
    case Inst::kIdSub:
      if (reg != k_rsp) return false;
      return say({.kind = Kind::lower_unknown, .reg = amount}), true;
    case Inst::kIdAnd: {
      if (reg != k_rsp) return false;
      // -16 rounds down to a multiple of 16.
      const std::int64_t multiple = immediate ? -v::imm_value(op(1)) : 0;
      const bool rounds = multiple > 0 && std::has_single_bit(static_cast<std::uint64_t>(multiple));
      return say({.kind = Kind::lower_unknown, .value = rounds ? multiple : 0}), true;
    }
    default:
      return false;
  }
}

/// Uses asmjit's information about operands; if it has none, every operand counts as written.
void Translation::anything() {
  std::size_t count = 0;
  while (has_op(count)) ++count;
  v::RwInfo info;
  const bool known = v::query_rw_info(inst_, ops_.data(), count, info);
  const bool multiplies = id_ == Inst::kIdMul || id_ == Inst::kIdImul || id_ == Inst::kIdDiv || id_ == Inst::kIdIdiv;
  const bool only_reads = multiplies && count == 1;  // the result is in ax, or in rdx and rax
  RegSet written = multiplies && count > 1 ? 0 : written_implicitly(id_);
  if (only_reads && is_gp8(op(0))) written = set_of(k_rax);
  for (std::size_t i = 0; i < count; ++i) {
    bool is_written = !only_reads && (!known || v::is_write(info.operand(i)));
    if (id_ == Inst::kIdCmpxchg && i == 0) is_written = true;  // asmjit 1.9 says of registers that they are not
    if (v::is_gp(op(i)) && is_written) written |= set_of(general(op(i)));
    if (is_vector(op(i)) && is_written) written |= set_of(vector(op(i)));
    if (!v::is_mem(op(i))) continue;
    const v::MemoryOperand memory = v::memory_operand(op(i));
    if (memory.plain_base && (!known || v::is_base_write(info.operand(i)))) written |= set_of(dwarf_of(memory.base));
    if (!is_written) continue;
    const auto bytes = known ? static_cast<std::uint32_t>(std::bit_width(v::write_byte_mask(info.operand(i)))) : 64;
    store(memory, k_no_reg, std::max({bytes, memory.size, 1u}));
  }
  clobber(written);
}

RegSet written_implicitly(std::uint32_t instruction) {
  constexpr RegSet a = set_of(k_rax), d = set_of(k_rdx), c = set_of(k_rcx), b = set_of(k_rbx);
  constexpr RegSet strings = set_of(k_rsi) | set_of(k_rdi) | c;
  switch (instruction) {
    case Inst::kIdMul:
    case Inst::kIdImul:
    case Inst::kIdDiv:
    case Inst::kIdIdiv:
    case Inst::kIdCmpxchg8b:
    case Inst::kIdCmpxchg16b:
    case Inst::kIdRdpkru:
    case Inst::kIdRdtsc:
    case Inst::kIdRdmsr:
    case Inst::kIdRdpmc:
    case Inst::kIdXgetbv:
    case Inst::kIdRdpru:
      return a | d;
    case Inst::kIdCwd:
    case Inst::kIdCdq:
    case Inst::kIdCqo:
      return d;
    case Inst::kIdRdtscp:
      return a | d | c;
    case Inst::kIdCbw:
    case Inst::kIdCwde:
    case Inst::kIdCdqe:
    case Inst::kIdCmpxchg:
    case Inst::kIdLahf:
    case Inst::kIdXlatb:
    case Inst::kIdIn:
    case Inst::kIdInt:
    case Inst::kIdXabort:
    case Inst::kIdXbegin:
      return a;
    case Inst::kIdCpuid:
    case Inst::kIdGetsec:
    case Inst::kIdPconfig:
      return a | b | c | d;
    case Inst::kIdSyscall:
      return a | c | set_of(k_r11);
    case Inst::kIdLods:
      return strings | a;
    case Inst::kIdMovs:
    case Inst::kIdStos:
    case Inst::kIdScas:
    case Inst::kIdCmps:
    case Inst::kIdIns:
    case Inst::kIdOuts:
      return strings;
    case Inst::kIdLoop:
    case Inst::kIdLoope:
    case Inst::kIdLoopne:
    case Inst::kIdPcmpestri:
    case Inst::kIdPcmpistri:
    case Inst::kIdVpcmpestri:
    case Inst::kIdVpcmpistri:
      return c;
    case Inst::kIdVzeroall:
      return registers_of(0, 0xffff);
    default:
      return 0;
  }
}

}  // namespace

bool flow_effect(std::uint32_t id, RegSet implicit, std::span<const Operand_> operands, Effect& out) noexcept {
  const bool has_register = !operands.empty() && is_gp64(operands[0]);
  const bool has_label = !operands.empty() && v::is_label(operands[0]);
  if (has_label) out.label = operands[0].id();
  switch (v::control_flow(id)) {
    case ::asmjit::InstControlFlow::kCall:
      out.kind = Kind::call;
      if (has_register) out.reg = general(operands[0]);
      return true;
    case ::asmjit::InstControlFlow::kJump:
      out.kind = Kind::jump;
      out.value = Effect::any;
      return has_label;
    case ::asmjit::InstControlFlow::kBranch:
      out.kind = Kind::branch;
      out.value = id == Inst::kIdJz || id == Inst::kIdJe     ? Effect::equal
                  : id == Inst::kIdJnz || id == Inst::kIdJne ? Effect::different
                                                             : Effect::any;
      return has_label && (implicit & ~set_of(k_rsp)) == 0;
    case ::asmjit::InstControlFlow::kReturn:
      out.kind = Kind::ret;
      return id == Inst::kIdRet && (operands.empty() || v::is_none(operands[0]));
    default:
      return false;
  }
}

bool sum_effect(std::uint32_t id, std::span<const Operand_> operands, Effect& out) noexcept {
  if (operands.size() < 2 || v::is_none(operands[1])) return false;
  const Operand_ &to = operands[0], &from = operands[1];
  if ((id == Inst::kIdAdd || id == Inst::kIdSub) && is_gp64(to) && v::is_imm(from)) {
    const std::int64_t value = v::imm_value(from);
    out = {.kind = Kind::copy, .reg = general(to), .base = general(to), .value = id == Inst::kIdAdd ? value : -value};
    return true;
  }
  if (id != Inst::kIdMov && id != Inst::kIdMovabs) return false;
  if (v::is_mem(to)) {
    const v::MemoryOperand memory = v::memory_operand(to);
    const bool is_whole = is_gp64(from);
    const std::uint32_t size = is_whole || memory.size == 0 ? 8 : memory.size;
    if (memory.plain_base)
      out = {Kind::store, is_whole ? general(from) : k_no_reg, dwarf_of(memory.base), size, k_no_label, memory.offset};
    return true;
  }
  if (!is_gp64(to)) return false;
  const v::MemoryOperand memory = v::is_mem(from) ? v::memory_operand(from) : v::MemoryOperand{};
  if (is_gp64(from))
    out = {.kind = Kind::copy, .reg = general(to), .base = general(from)};
  else if (memory.plain_base && (memory.size == 0 || memory.size == 8))
    out = {.kind = Kind::load, .reg = general(to), .base = dwarf_of(memory.base), .value = memory.offset};
  else
    out.set = set_of(general(to));
  return true;
}

RegSet registers_of(std::uint64_t general_mask, std::uint64_t vector_mask) noexcept {
  RegSet set = 0;
  for (std::uint32_t i = 0; i < 16; ++i) {
    if (general_mask >> i & 1) set |= set_of(dwarf_of(i));
    if (vector_mask >> i & 1) set |= set_of(vector_register(i));
  }
  return set & ~set_of(k_rsp);
}

void append_effects(const ::asmjit::BaseInst& instruction, std::span<const Operand_> operands,
                    std::vector<Effect>& out) {
  Translation(instruction, operands, out).run();
}

bool append_stack_and_flow(const ::asmjit::BaseInst& instruction, std::span<const ::asmjit::Operand> operands,
                           std::vector<Effect>& out) {
  return Translation(instruction, as_base(operands), out).stack_or_flow();
}

std::span<const RegSet> implicit_changes() {
  static const auto known = [] {
    std::array<RegSet, Inst::_kIdCount> out;
    std::vector<Effect> effects;
    const std::array<::asmjit::Operand, 2> none;
    for (std::uint32_t id = 0; id < out.size(); ++id)
      out[id] =
          written_implicitly(id) | (append_stack_and_flow(::asmjit::BaseInst(id), none, effects) ? set_of(k_rsp) : 0);
    return out;
  }();
  return known;
}

void append_changes(std::span<const ::asmjit::Operand> registers, std::vector<Effect>& out) {
  const RegSet changed = named_registers(registers).operands;
  if (has(changed, k_rsp)) out.push_back({.kind = Kind::sp_unknown});
  if (changed != 0) out.push_back({.kind = Kind::clobber, .set = changed});
}

}  // namespace jitunwind::derivation
