// Instructions of x86 in 64-bit and in 32-bit mode: their effects on SP, the frame pointer, saved registers and the
// flow of control. Far transfers, and instructions that return with other registers, are unknown: following the code
// stops there.
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/arch/x86_encoding_p.h"

namespace jitunwind::arch {
namespace {

using Effect = MachineInstruction::Effect;
using Kind = JumpOperand::Kind;
using x86_code::Map;
using x86_code::Opcodes;
using x86_code::Parts;

/// Codes of registers in instructions, in either mode.
constexpr unsigned k_ax = 0, k_cx = 1, k_dx = 2, k_bx = 3, k_sp = 4, k_fp = 5, k_si = 6, k_di = 7;

/// Numbers in the order of the codes. The order of AMD64 ABI, figure 3.36, is another one; that of the psABI for i386,
/// table 2.14, is the same.
RegNum dwarf(const Parts& p, unsigned code) {
  return p.is_64 ? arch::x86_64_general(code & 15) : static_cast<RegNum>(code & 7);
}
std::uint32_t bit_of(const Parts& p, unsigned code) { return std::uint32_t{1} << dwarf(p, code); }
std::int64_t word(const Parts& p) { return p.is_64 ? 8 : 4; }

/// Memory relative to a register and nothing else.
bool is_slot(const Parts& p) { return p.is_memory() && p.has_base && !p.has_index && !p.address_size; }

/// A register of 8 bits: if there is no REX, the upper four are the second bytes of the first four.
unsigned byte_register(const Parts& p, unsigned code) { return !p.has_rex && code >= 4 && code < 8 ? code - 4 : code; }

std::uint32_t written_rm(const Parts& p, bool is_byte) {
  return p.is_register() ? bit_of(p, is_byte ? byte_register(p, p.rm) : p.rm) : 0;
}
std::uint32_t written_reg(const Parts& p, bool is_byte) { return bit_of(p, is_byte ? byte_register(p, p.reg) : p.reg); }

constexpr Opcodes k_moves_si{{0x6e, 0x6f}, {0xa4, 0xa7}, {0xac, 0xad}};
constexpr Opcodes k_moves_di{{0x6c, 0x6d}, {0xa4, 0xa7}, {0xaa, 0xab}, {0xae, 0xaf}};

constexpr Opcodes k_writes_whole_reg{{0x69, 0x69}, {0x6b, 0x6b}, {0x8d, 0x8d}, {0xc4, 0xc5}};  // imul, lea, les, lds
constexpr Opcodes k_stores{{0x88, 0x89}, {0xc0, 0xc1}, {0xc6, 0xc7}, {0xd0, 0xd3}};  // and shifts

constexpr Opcodes k_writes_ax{{0x27, 0x27}, {0x2f, 0x2f}, {0x37, 0x37}, {0x3f, 0x3f}, {0xd4, 0xd6}, {0x98, 0x98}, {0x9f, 0xa1}, {0xac, 0xad}, {0xd7, 0xd7}, {0xe4, 0xe5}, {0xec, 0xed}};
constexpr Opcodes k_strings{{0x6c, 0x6f}, {0xa4, 0xa7}, {0xaa, 0xaf}};

/// Registers that are written by instructions which do not name them.
std::uint32_t written_silently(const Parts& p) {
  const unsigned op = p.opcode;
  std::uint32_t written = k_strings.has(op) && p.repeat != 0 ? bit_of(p, k_cx) : 0;
  if (k_writes_ax.has(op) || op == 0xcd) written |= bit_of(p, k_ax);  // int leaves a result there
  if (op == 0x99) written |= bit_of(p, k_dx);
  if (op == 0xdf && p.is_register() && p.group() == 4 && (p.rm & 7) == 0) written |= bit_of(p, k_ax);  // fnstsw
  if (op == 0xf6 || op == 0xf7)
    written |= p.group() < 4 ? 0 : op == 0xf6 ? bit_of(p, k_ax) : bit_of(p, k_ax) | bit_of(p, k_dx);
  return written | (k_moves_si.has(op) ? bit_of(p, k_si) : 0) | (k_moves_di.has(op) ? bit_of(p, k_di) : 0);
}

std::uint32_t written_one_byte(const Parts& p) {
  const unsigned op = p.opcode;
  const bool is_byte = (op & 1) == 0;
  if (op < 0x40 && !k_writes_ax.has(op)) {
    if (op >= 0x38 || (op & 7) > 3) return (op & 7) <= 5 && op < 0x38 ? bit_of(p, k_ax) : 0;
    return (op & 2) != 0 ? written_reg(p, is_byte) : written_rm(p, is_byte);
  }
  if (!p.is_64 && op >= 0x40 && op <= 0x4f) return bit_of(p, op & 7);
  if (op == 0x63) return p.is_64 ? written_reg(p, false) : written_rm(p, false);  // in 32-bit mode arpl
  if (op >= 0x80 && op <= 0x83) return p.group() == 7 ? 0 : written_rm(p, is_byte);
  if (op == 0x8c) return written_rm(p, false);
  if ((op == 0xf6 || op == 0xf7) && (p.group() == 2 || p.group() == 3)) return written_rm(p, is_byte);
  if (op == 0xfe || op == 0xff) return p.group() <= 1 ? written_rm(p, is_byte) : 0;
  if (k_writes_whole_reg.has(op)) return written_reg(p, false);
  if (op == 0x86 || op == 0x87) return written_rm(p, is_byte) | written_reg(p, is_byte);
  if (k_stores.has(op)) return written_rm(p, is_byte);
  if (op == 0x8a || op == 0x8b) return written_reg(p, is_byte);
  if (op >= 0x90 && op <= 0x97) return op == 0x90 && (p.b == 0 || p.repeat == 0xf3) ? 0 : bit_of(p, k_ax) | bit_of(p, (op & 7) | p.b);
  if (op >= 0xb0 && op <= 0xb7) return bit_of(p, byte_register(p, (op & 7) | p.b));
  if (op >= 0xb8 && op <= 0xbf) return bit_of(p, (op & 7) | p.b);
  return written_silently(p);
}

/// Opcodes whose `reg` names a general register that is written, and those whose other operand does.
constexpr Opcodes k_writes_reg{{0x02, 0x03}, {0x40, 0x50}, {0xaf, 0xaf}, {0xb2, 0xb2}, {0xb4, 0xb8},
                               {0xbc, 0xbf}, {0xc5, 0xc5}, {0xd7, 0xd7}};
constexpr Opcodes k_writes_rm{{0x90, 0x9f}, {0xa4, 0xa5}, {0xab, 0xad},
                              {0xb3, 0xb3}, {0xbb, 0xbb}, {0xc0, 0xc1}};

std::uint32_t written_two_byte(const Parts& p) {
  const unsigned op = p.opcode;
  const std::uint32_t ax_dx = bit_of(p, k_ax) | bit_of(p, k_dx);
  switch (op) {
    case 0x00:
      return p.group() <= 1 ? written_rm(p, false) : 0;
    case 0x01:  // smsw; xgetbv, rdpkru, rdtscp
      if (p.group() == 4) return written_rm(p, false);
      if (p.is_register() && p.group() == 7 && (p.rm & 7) == 5) return ax_dx;  // rdpru
      if (!p.is_register() || p.repeat != 0) return 0;
      if (p.group() == 7 && (p.rm & 7) == 1) return ax_dx | bit_of(p, k_cx);
      return (p.group() == 2 && (p.rm & 7) == 0) || (p.group() == 5 && (p.rm & 7) == 6) ? ax_dx : 0;
    case 0x05:  // syscall
      return p.is_64 ? bit_of(p, k_ax) | bit_of(p, k_cx) | bit_of(p, 11) : 0;
    case 0x31:  // rdtsc, rdmsr, rdpmc
    case 0x32:
    case 0x33:
      return ax_dx;
    case 0x1e:  // rdssp; rdfsbase, rdgsbase
      return p.repeat == 0xf3 && p.group() == 1 ? written_rm(p, false) : 0;
    case 0xae:
      return p.repeat == 0xf3 && p.group() <= 1 ? written_rm(p, false) : 0;
    case 0x2c:
    case 0x2d:
      return p.repeat != 0 ? written_reg(p, false) : 0;
    case 0x7e:
      return p.repeat == 0 ? written_rm(p, false) : 0;
    case 0xa2:  // cpuid
      return ax_dx | bit_of(p, k_bx) | bit_of(p, k_cx);
    case 0xb0:  // cmpxchg
    case 0xb1:
      return written_rm(p, op == 0xb0) | bit_of(p, k_ax);
    case 0xc7:  // cmpxchg8b and cmpxchg16b; rdrand, rdseed, rdpid
      return !p.is_register() && p.group() == 1 ? ax_dx : p.group() >= 6 && !(p.group() == 6 && p.repeat == 0xf3) ? written_rm(p, false) : 0;
    case 0xba:
      return p.group() == 4 ? 0 : written_rm(p, false);
    default:
      break;
  }
  if (op >= 0xc8 && op <= 0xcf) return bit_of(p, (op & 7) | p.b);
  const bool is_byte = (op >= 0x90 && op <= 0x9f) || op == 0xb0 || op == 0xc0;
  std::uint32_t written = 0;
  if (k_writes_reg.has(op) || op == 0xc0 || op == 0xc1) written |= written_reg(p, is_byte);
  if (k_writes_rm.has(op)) written |= written_rm(p, is_byte);
  return written;
}

std::uint32_t written_vector(const Parts& p) {
  const unsigned op = p.opcode;
  const std::uint32_t reg = bit_of(p, p.reg);
  switch (p.map) {
    case Map::two_byte:
      if (op == 0x50 || op == 0xc5 || op == 0xd7 || op == 0x93) return reg;
      if (op == 0x2c || op == 0x2d || op == 0x78 || op == 0x79) return p.repeat != 0 ? reg : 0;
      return op == 0x7e && p.repeat == 0 ? written_rm(p, false) : 0;
    case Map::m38:
      if (op == 0xf3) return bit_of(p, p.vvvv);
      if (op == 0xf6) return reg | bit_of(p, p.vvvv);
      return op == 0xf2 || op == 0xf5 || op == 0xf7 || (op & 0xf0) == 0xe0 ? reg : 0;
    case Map::m3a:
      if (op == 0x61 || op == 0x63) return bit_of(p, k_cx);  // vpcmpestri, vpcmpistri
      return op == 0xf0 ? reg : op >= 0x14 && op <= 0x17 ? written_rm(p, false) : 0;
    case Map::fp16_5:
      if (op == 0x2c || op == 0x2d || op == 0x78 || op == 0x79) return p.repeat == 0xf3 ? reg : 0;
      return op == 0x7e ? written_rm(p, false) : 0;
    default:
      return 0;
  }
}

std::uint32_t written_by(const Parts& p) {
  if (p.is_vector) return written_vector(p);
  switch (p.map) {
    case Map::one_byte:
      return written_one_byte(p);
    case Map::two_byte:
      return written_two_byte(p);
    case Map::m38:
      if (p.opcode == 0xf6) return p.repeat == 0xf3 || p.operand_size || p.w ? written_reg(p, false) : 0;  // adcx, adox
      return p.opcode == 0xf0 || (p.opcode == 0xf1 && p.repeat == 0xf2) ? written_reg(p, false) : 0;
    case Map::m3a:
      if (p.opcode == 0x61 || p.opcode == 0x63) return bit_of(p, k_cx);
      return p.opcode >= 0x14 && p.opcode <= 0x17 ? written_rm(p, false) : 0;
    default:
      return 0;
  }
}

/// An operand of 16 bits cuts the address off in 32-bit mode.
MachineInstruction to(const Parts& p, Effect effect, Addr next) {
  if (!p.is_64 && p.operand_size) return with_effect(Effect::unknown);
  MachineInstruction i = with_effect(effect);
  i.target = (next + static_cast<Addr>(p.immediate)) & (p.is_64 ? ~Addr{0} : 0xffff'ffff);
  return i;
}

MachineInstruction and_writes(std::uint32_t registers, MachineInstruction i) {
  i.written = registers;
  return i;
}

/// je and jne tell whether what was compared is equal.
MachineInstruction branch(const Parts& p, Addr next) {
  MachineInstruction i = to(p, Effect::branch, next);
  const unsigned condition = p.opcode & 15;
  if (condition == 4 || condition == 5)
    i.condition = condition == 4 ? MachineInstruction::If::equal : MachineInstruction::If::different;
  return i;
}

/// reg = base + amount, if it is all of the register.
MachineInstruction set(const Parts& p, unsigned reg, unsigned base, std::int64_t amount) {
  if (!p.is_whole()) return that_writes(bit_of(p, reg));
  return with_effect(Effect::set, dwarf(p, reg), amount, dwarf(p, base));
}

MachineInstruction move_between_registers(const Parts& p, unsigned reg, unsigned from) {
  return (p.opcode & 1) != 0 ? set(p, reg, from, 0) : that_writes(written_by(p));
}

/// Accesses to words in which registers may be saved.
MachineInstruction access(const Parts& p, Effect effect) {
  const bool is_indexed = effect == Effect::load && p.is_whole() && p.has_base && p.has_index && !p.address_size;
  if (is_indexed) {
    MachineInstruction i = with_effect(effect, dwarf(p, p.reg), p.displacement, dwarf(p, p.base));
    i.index = dwarf(p, p.index);
    return i;
  }
  if (p.is_whole() && is_slot(p)) return with_effect(effect, dwarf(p, p.reg), p.displacement, dwarf(p, p.base));
  return that_writes(written_by(p));
}

JumpOperand operand_of(const Parts& p, Addr next) {
  JumpOperand operand;
  if (p.address_size) return operand;
  if (p.is_register()) {
    operand.kind = Kind::value;
    operand.base = dwarf(p, p.rm);
    return operand;
  }
  operand.kind = Kind::memory;
  operand.offset = p.displacement + (p.is_rip ? static_cast<std::int64_t>(next) : 0);
  if (p.has_base) operand.base = dwarf(p, p.base);
  if (p.has_index) operand.index = dwarf(p, p.index);
  operand.scale = static_cast<std::uint8_t>(p.scale);
  return operand;
}

/// ff: inc, dec, call, far call, jmp, far jmp, push.
MachineInstruction group_ff(const Parts& p, Addr next) {
  switch (p.group()) {
    case 0:
    case 1:
      return that_writes(written_by(p));
    case 2:
    case 4: {
      if (!p.is_64 && p.operand_size) return with_effect(Effect::unknown);
      MachineInstruction i = with_effect(p.group() == 2 ? Effect::call : Effect::jump);
      i.operand = operand_of(p, next);
      return i;
    }
    case 6:
      return p.operand_size ? with_effect(Effect::unknown)
                            : with_effect(Effect::push, p.is_register() ? dwarf(p, p.rm) : k_no_reg, word(p));
    default:
      return with_effect(Effect::unknown);
  }
}

/// add, sub and others with an immediate: a register changes by a known amount, or to any value.
MachineInstruction arithmetic(const Parts& p) {
  const bool is_whole = p.is_register() && p.is_whole();
  if (is_whole && p.group() == 0) return set(p, p.rm, p.rm, p.immediate);
  if (is_whole && p.group() == 5) return set(p, p.rm, p.rm, -p.immediate);
  return that_writes(written_by(p));
}

MachineInstruction push_or_pop(const Parts& p, Effect effect, RegNum reg) {
  return p.operand_size ? with_effect(Effect::unknown) : with_effect(effect, reg, word(p));
}

/// pusha and popa of 32-bit mode: eight registers, whose places are not needed; SP is not popped.
MachineInstruction push_or_pop_all(const Parts& p, Effect effect) {
  if (p.operand_size) return with_effect(Effect::unknown);
  MachineInstruction i = with_effect(effect, k_no_reg, 8 * word(p));
  if (effect == Effect::pop) i.written = 0xff & ~bit_of(p, k_sp);
  return i;
}

/// Instructions of 32-bit mode alone: those of segment registers, and of all general ones.
MachineInstruction one_byte_32(const Parts& p) {
  if (p.opcode == 0x60 || p.opcode == 0x61) return push_or_pop_all(p, p.opcode == 0x60 ? Effect::push : Effect::pop);
  return push_or_pop(p, (p.opcode & 1) == 0 ? Effect::push : Effect::pop, k_no_reg);
}
constexpr Opcodes k_only_32{{0x06, 0x07}, {0x0e, 0x0e}, {0x16, 0x17}, {0x1e, 0x1f}, {0x60, 0x61}};

MachineInstruction one_byte(const Parts& p, Addr next) {
  const unsigned op = p.opcode;
  if (!p.is_64 && k_only_32.has(op)) return one_byte_32(p);
  if (op >= 0x50 && op <= 0x5f)
    return push_or_pop(p, op < 0x58 ? Effect::push : Effect::pop, dwarf(p, (op & 7) | p.b));
  if (op >= 0x70 && op <= 0x7f) return branch(p, next);
  if (op >= 0xe0 && op <= 0xe3)  // loop; jecxz
    return and_writes(op != 0xe3 ? bit_of(p, k_cx) : 0, to(p, Effect::branch, next));
  switch (op) {
    case 0x68:
    case 0x6a:
    case 0x9c:
      return push_or_pop(p, Effect::push, k_no_reg);
    case 0x8f:
      return push_or_pop(p, Effect::pop, p.is_register() ? dwarf(p, p.rm) : k_no_reg);
    case 0x9d:
      return push_or_pop(p, Effect::pop, k_no_reg);
    case 0x81:
    case 0x83:
      return arithmetic(p);
    case 0x39:
    case 0x3b:
      if (!p.is_register() || !p.is_whole()) return that_writes(0);
      return with_effect(Effect::compare, dwarf(p, p.reg), 0, dwarf(p, p.rm));
    case 0x89:
      return p.is_register() ? move_between_registers(p, p.rm, p.reg) : access(p, Effect::store);
    case 0x87:
      if (!p.is_register() || !p.is_whole()) return that_writes(written_by(p));
      return with_effect(Effect::exchange, dwarf(p, p.reg), 0, dwarf(p, p.rm));
    case 0x8b:
      return p.is_register() ? move_between_registers(p, p.reg, p.rm) : access(p, Effect::load);
    case 0x8d:
      return is_slot(p) ? set(p, p.reg, p.base, p.displacement) : that_writes(written_by(p));
    case 0xc2:
    case 0xc3:
      return with_effect(!p.is_64 && p.operand_size ? Effect::unknown : Effect::ret);
    case 0xc6:
    case 0xc7:  // mov; xabort, xbegin
      if (p.group() != 7 || !p.is_register()) return that_writes(written_by(p));
      if (op == 0xc6) return that_writes(bit_of(p, k_ax));
      return and_writes(bit_of(p, k_ax), to(p, Effect::branch, next));
    case 0xc8:  // enter: a size of 16 bits, and levels of 8
      if (p.operand_size || p.immediate >> 16 != 0) return with_effect(Effect::unknown);
      return with_effect(Effect::enter, dwarf(p, k_fp), p.immediate & 0xffff);
    case 0xca:
    case 0xcb:
    case 0xcf:
      return with_effect(Effect::unknown);
    case 0xc9:
      return p.operand_size ? with_effect(Effect::unknown) : with_effect(Effect::leave, dwarf(p, k_fp), word(p));
    case 0xcc:
    case 0xf4:
      return with_effect(Effect::stop);
    case 0xe8:
      if (p.operand_size) return with_effect(Effect::unknown);
      return p.immediate == 0 ? with_effect(Effect::push, k_no_reg, word(p)) : to(p, Effect::call, next);
    case 0xe9:
      return p.operand_size ? with_effect(Effect::unknown) : to(p, Effect::jump, next);
    case 0xeb:
      return to(p, Effect::jump, next);
    case 0xff:
      return group_ff(p, next);
    default:
      return that_writes(written_by(p));
  }
}

/// enclu and its relatives return with other registers; so do some instructions of hypervisors.
bool is_of_enclaves(const Parts& p) {
  if (p.is_register() && (p.operand_size || p.repeat == 0xf2)) return true;
  const unsigned code = p.group() << 3 | (p.rm & 7);
  return p.is_register() && (code == 0x00 || code == 0x05 || code == 0x0f || code == 0x17);
}

MachineInstruction two_byte(const Parts& p, Addr next) {
  const unsigned op = p.opcode;
  if (p.is_long_branch()) {
    if (p.operand_size) return with_effect(Effect::unknown);
    return branch(p, next);
  }
  switch (op) {
    case 0x6e:  // movq to a vector register
      if (p.w && p.is_register() && p.repeat == 0) return with_effect(Effect::escape, dwarf(p, p.rm));
      return that_writes(0);
    case 0x01:
      return is_of_enclaves(p) ? with_effect(Effect::unknown) : that_writes(written_by(p));
    case 0x07:  // sysret, sysenter, sysexit, getsec
    case 0x34:
    case 0x35:
    case 0x37:
      return with_effect(Effect::unknown);
    case 0x0b:
    case 0xb9:
    case 0xff:
      return with_effect(Effect::stop);
    case 0xa0:
    case 0xa8:
      return push_or_pop(p, Effect::push, k_no_reg);
    case 0xa1:
    case 0xa9:
      return push_or_pop(p, Effect::pop, k_no_reg);
    default:
      return that_writes(written_by(p));
  }
}

MachineInstruction effect_of(const Parts& p, Addr next) {
  if (p.is_vector || p.map == Map::m38 || p.map == Map::m3a) return that_writes(written_by(p));
  return p.map == Map::one_byte ? one_byte(p, next) : two_byte(p, next);
}

/// nop and its long forms; xchg ax,ax; int3 behind the end of code.
bool is_padding(const Parts& p) {
  if (p.is_vector) return false;
  if (p.map == Map::one_byte) return (p.opcode == 0x90 && p.b == 0 && p.repeat == 0) || p.opcode == 0xcc;
  return p.map == Map::two_byte && p.opcode == 0x1f;
}

MachineInstruction read_instruction(std::span<const std::byte> bytes, Addr at, bool is_64) {
  Parts parts;
  parts.is_64 = is_64;
  if (!read_parts(bytes, parts)) return {};
  MachineInstruction i = effect_of(parts, at + parts.length);
  i.length = parts.length;
  i.pads = is_padding(parts);
  return i;
}

}  // namespace

MachineInstruction read_x86_64_instruction(std::span<const std::byte> bytes, Addr at) noexcept {
  // Pushes and pops of registers, which prologues and epilogues mostly are, without a look at all other forms.
  const std::uint8_t has_b = bytes.size() > 1 && bytes[0] == std::byte{0x41};
  const unsigned op = bytes.empty() ? 0 : static_cast<unsigned>(bytes[has_b]);
  if (op >= 0x50 && op <= 0x5f) {
    Parts p;
    p.is_64 = true;
    MachineInstruction i = push_or_pop(p, op < 0x58 ? Effect::push : Effect::pop, dwarf(p, (op & 7) | has_b * 8u));
    i.length = static_cast<std::uint8_t>(1 + has_b);
    return i;
  }
  return read_instruction(bytes, at, true);
}

MachineInstruction read_x86_instruction(std::span<const std::byte> bytes, Addr at) noexcept {
  return read_instruction(bytes, at, false);
}

}  // namespace jitunwind::arch
