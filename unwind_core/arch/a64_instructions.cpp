// Instructions of AArch64 (Arm Architecture Reference Manual for A-profile, C4.1: the encoding by bits 28 to 25): their
// effects on SP, the frame pointer, the link register, saved registers and the flow of control. Others, such as SVE and
// SME, are unknown: following the code stops there.
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/arch/a64_encoding_p.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::arch {
namespace {

using namespace a64_code;
using Effect = MachineInstruction::Effect;

/// MOVZ, MOVN, MOVK of 64 bits: numbers by which SP moves if they are too large for ADD and SUB.
MachineInstruction number(Word word) {
  const unsigned kind = word.field(29, 2), to = word.field(0, 5), shift = 16 * word.field(21, 2);
  if (kind == 1) return {};
  if (to == k_x31) return that_writes(0);
  MachineInstruction out = with_effect(Effect::number, static_cast<RegNum>(to));
  const std::uint64_t value = std::uint64_t{word.field(5, 16)} << shift;
  out.amount = static_cast<std::int64_t>(kind == 0 ? ~value : value);
  if (kind == 3) out.base = out.reg, out.step = static_cast<std::int32_t>(shift);
  out.written = bit_of_general(to);
  return out;
}

/// "Data Processing -- Immediate": ADD, SUB and the logical instructions without flags write SP, and those of memory
/// tags do.
MachineInstruction with_immediate(Word word) {
  const unsigned to = word.field(0, 5), from = word.field(5, 5);
  const bool adds = word.is(0x3f80'0000, 0x1100'0000), tags = word.is(0x1f80'0000, 0x1180'0000);
  const bool combines = word.is(0x1f80'0000, 0x1200'0000) && word.field(29, 2) != 3;
  if (adds && word.bit(31) && is_of_frame(to) && is_of_frame(from)) {
    const std::int64_t amount = std::int64_t{word.field(10, 12)} << (word.bit(22) ? 12 : 0);
    return with_effect(Effect::set, static_cast<RegNum>(to), word.bit(30) ? -amount : amount,
                       static_cast<RegNum>(from));
  }
  if (word.is(0x9f80'0000, 0x9280'0000)) return number(word);
  // AUTIASPPC, AUTIBSPPC: the signature also covers the address of the instruction that signed.
  if (word.is(0xff80'0000, 0xf380'0000)) return {};
  return that_writes(adds || tags || combines ? bit_of_general_or_sp(to) : bit_of_general(to));
}

/// "Data Processing -- Register": ADD and SUB of an extended register, or of a checked pointer, and IRG write SP;
/// conditional compares write nothing.
MachineInstruction with_registers(Word word) {
  if (word.is(0x1fe0'0000, 0x1a40'0000)) return that_writes(0);
  const unsigned to = word.field(0, 5);
  const bool adds = word.is(0x3fe0'0000, 0x0b20'0000) || word.is(0xbfe0'e000, 0x9a00'2000);
  const bool tags = word.is(0xffe0'fc00, 0x9ac0'1000);
  // ADD and SUB of a whole register, not shifted, to SP.
  if (word.is(0xbfe0'fc1f, 0x8b20'601f) && word.field(5, 5) == k_x31 && word.field(16, 5) != k_x31) {
    MachineInstruction out = with_effect(Effect::set, k_x31, 0, k_x31);
    out.index = static_cast<RegNum>(word.field(16, 5));
    out.step = word.bit(30) ? -1 : 1;
    return out;
  }
  return that_writes(adds || tags ? bit_of_general_or_sp(to) : bit_of_general(to));
}

/// Loads and stores of one register or of two, which may write the address back.
struct Access {
  bool loads = false;
  bool is_vector = false;
  bool has_two = false;
  bool is_at_offset = false;  ///< from the base alone, without an index register
  bool writes_back = false;
  std::int64_t width = 0;  ///< bytes of each register
  unsigned first = 0, second = 0, base = 0;
  std::int64_t amount = 0;
  std::int32_t step = 0;

  RegNum reg(unsigned code) const { return is_vector ? vector_register(code) : general_register(code); }
  MachineInstruction instruction() const {
    const std::uint32_t loaded = loads ? bit_of(reg(first)) | (has_two ? bit_of(reg(second)) : 0) : 0;
    if (!is_of_frame(base) || !is_at_offset) return that_writes(loaded | (writes_back ? bit_of_general(base) : 0));
    if (width != 8 && !writes_back) return that_writes(loaded);
    MachineInstruction out = with_effect(width != 8 ? Effect::set : loads ? Effect::load : Effect::store);
    out.base = static_cast<RegNum>(base);
    if (width != 8) {
      out.reg = out.base;
      out.amount = step;
      out.written = loaded;
    } else {
      out.reg = reg(first);
      out.second = has_two ? reg(second) : k_no_reg;
      out.amount = amount;
      out.step = step;
    }
    return out;
  }
};

MachineInstruction with_pair(Word word) {
  const unsigned kind = word.field(30, 2);
  Access a{.loads = word.bit(22), .is_vector = word.bit(26), .has_two = true, .is_at_offset = true};
  if (kind == 3) return {};
  a.first = word.field(0, 5), a.base = word.field(5, 5), a.second = word.field(10, 5);
  const bool stores_tag = kind == 1 && !a.is_vector && !a.loads;
  a.width = a.is_vector ? 4 << kind : kind == 2 ? 8 : 4;
  const std::int32_t distance = word.signed_field(15, 7) * (stores_tag ? 16 : static_cast<std::int32_t>(a.width));
  a.writes_back = word.bit(23);
  a.amount = a.writes_back && !word.bit(24) ? 0 : distance;
  a.step = a.writes_back ? distance : 0;
  return a.instruction();
}

MachineInstruction with_one(Word word) {
  const unsigned size = word.field(30, 2), operation = word.field(22, 2), how = word.field(10, 2);
  const bool is_scaled = word.bit(24), is_vector = word.bit(26);
  if (!is_vector && size == 3 && operation == 2) return that_writes(0);  // prefetch
  Access a{.loads = is_vector ? word.bit(22) : operation != 0, .is_vector = is_vector};
  a.is_at_offset = is_scaled || !word.bit(21);
  a.width = is_vector && operation >= 2 ? 16 : 1 << size;
  a.first = word.field(0, 5), a.base = word.field(5, 5);
  a.writes_back = !is_scaled && !word.bit(21) && (how & 1) != 0;
  a.amount = is_scaled ? word.field(10, 12) * a.width : how == 1 ? 0 : word.signed_field(12, 9);
  a.step = a.writes_back ? word.signed_field(12, 9) : 0;
  return a.instruction();
}

/// Loads and stores of one to four registers, one after the other.
MachineInstruction with_vectors(Word word) {
  std::uint32_t written = word.bit(23) ? bit_of_general_or_sp(word.field(5, 5)) : 0;
  for (unsigned i = 0; word.bit(22) && i < 4; ++i) written |= bit_of(vector_register((word.field(0, 5) + i) % 32));
  return that_writes(written);
}

/// Exclusive, ordered, and compare-and-swap instructions. They may write two registers each, or a third one for the
/// status.
MachineInstruction with_exclusive(Word word) {
  const unsigned third = word.field(16, 5);
  return that_writes(bit_of_general(word.field(0, 5)) | bit_of_general(word.field(10, 5)) | bit_of_general(third) |
                     bit_of_general(third + 1));
}

MachineInstruction with_atomic(Word word) {
  const unsigned first = word.field(0, 5), operation = word.field(12, 4);
  const bool has_eight = word.field(30, 2) == 3 && (operation == 13 || (operation >= 9 && operation <= 11));
  if (has_eight) return {};
  return that_writes(word.bit(26) ? bit_of(vector_register(first)) : bit_of_general(first));
}

/// "Loads and Stores".
MachineInstruction with_memory(Word word) {
  if (word.is(0x3a00'0000, 0x2800'0000)) return with_pair(word);
  if (word.is(0x3b20'0000, 0x3800'0000) || word.is(0x3b00'0000, 0x3900'0000) || word.is(0x3b20'0c00, 0x3820'0800))
    return with_one(word);
  if (word.is(0x3b00'0000, 0x1800'0000)) {  // from an address in the code
    const bool prefetches = word.field(30, 2) == 3;
    const unsigned to = word.field(0, 5);
    return that_writes(word.bit(26) ? bit_of(vector_register(to)) : prefetches ? 0 : bit_of_general(to));
  }
  if (word.is(0xbe00'0000, 0x0c00'0000)) return with_vectors(word);
  if (word.is(0x3f00'0000, 0x0800'0000)) return with_exclusive(word);
  if (word.is(0x3b20'0c00, 0x3820'0000)) return with_atomic(word);
  if (word.is(0x3f20'0c00, 0x1900'0000)) return that_writes(bit_of_general(word.field(0, 5)));  // ordered, at an offset
  return {};
}

/// "Scalar Floating-Point and Advanced SIMD": most write a vector register, comparisons write nothing.
MachineInstruction with_vector(Word word) {
  const unsigned to = word.field(0, 5), operation = word.field(16, 3);
  const bool compares = word.is(0xff20'fc00, 0x1e20'2000) || word.is(0xff20'0c00, 0x1e20'0400);
  if (compares) return that_writes(0);
  // A bit for each mode of rounding and operation. Others are unallocated, or write a vector register (FEAT_FPRCVT).
  constexpr std::uint32_t k_to_general = 0x4303'4373;
  const bool converts = word.is(0x7f20'fc00, 0x1e20'0000) && (k_to_general >> word.field(16, 5) & 1) != 0;
  const bool converts_fixed = word.is(0x7f20'0000, 0x1e00'0000) && operation < 2;
  const bool moves = word.is(0xbfe0'fc00, 0x0e00'2c00) || word.is(0xbfe0'fc00, 0x0e00'3c00);
  const bool writes_general = converts || converts_fixed || moves;
  return that_writes(writes_general ? bit_of_general(to) : bit_of(vector_register(to)));
}

MachineInstruction by_register(Effect effect, Word word) {
  MachineInstruction out = with_effect(effect);
  const unsigned reg = word.field(5, 5);
  out.operand.kind = JumpOperand::Kind::value;
  out.operand.base = reg == k_x31 ? k_no_reg : static_cast<RegNum>(reg);
  return out;
}

MachineInstruction by_key(Effect effect, bool is_b) {
  return with_effect(effect, k_no_reg, static_cast<std::int64_t>(is_b ? SigningKey::b : SigningKey::a));
}

/// Signs or authenticates the link register. Zero in place of SP gives it an unknown value.
MachineInstruction with_signature(Word word) {
  if (!word.bit(5)) return that_writes(bit_of(k_x30));
  return by_key(word.bit(7) ? Effect::authenticate : Effect::sign, word.bit(6));
}

MachineInstruction of_system(Word word) {
  if (word.is(0xffff'ff1f, 0xd503'231f)) return with_signature(word);
  if (word.is(~0u, 0xd503'20ff)) return that_writes(bit_of(k_x30));  // XPACLRI
  if (word.is(~0u, 0xd503'24ff)) return {};  // PACM: the next signature is made in another way
  const unsigned to = word.field(0, 5);
  const std::uint32_t second = word.bit(22) ? bit_of_general(to + 1) : 0;
  return that_writes(word.bit(21) ? bit_of_general(to) | second : 0);
}

/// "Branches, Exception Generating and System instructions": those that have no target.
MachineInstruction without_target(Word word) {
  if (word.is(~0u, 0xd65f'03c0)) return with_effect(Effect::ret);
  if (word.is(~0x400u, 0xd65f'0bff)) return by_key(Effect::ret, word.bit(10));
  if (word.is(0xfeff'f000, 0xd63f'0000)) return by_register(Effect::call, word);
  if (word.is(0xfeff'f000, 0xd61f'0000)) return by_register(Effect::jump, word);
  if (word.is(0xfe00'0000, 0xd600'0000)) return with_effect(Effect::stop);
  if (word.is(0xffe0'001f, 0xd400'0001)) return that_writes(0);  // SVC
  if (word.is(0xff80'0000, 0xd500'0000)) return of_system(word);
  return with_effect(word.is(0xff00'0000, 0xd400'0000) ? Effect::stop : Effect::unknown);
}

/// The bits of the distance to an instruction's target, and their position. No bits: it has no target in the code.
struct Distance {
  Effect effect = Effect::unknown;
  unsigned at = 0, size = 0;
};
Distance distance_of(Word word) {
  if (word.is(0xfc00'0000, 0x1400'0000)) return {Effect::jump, 0, 26};
  if (word.is(0xfc00'0000, 0x9400'0000)) return {Effect::call, 0, 26};
  if (word.is(0xff00'0000, 0x5400'0000) || word.is(0x7e00'0000, 0x3400'0000)) return {Effect::branch, 5, 19};
  if (word.is(0x7e00'0000, 0x3600'0000)) return {Effect::branch, 5, 14};
  return {};
}

MachineInstruction read(Word word) {
  switch (word.field(25, 4)) {
    case 0b1000:
    case 0b1001:
      return with_immediate(word);
    case 0b1010:
    case 0b1011:
      return without_target(word);
    case 0b0101:
    case 0b1101:
      return with_registers(word);
    case 0b0100:
    case 0b0110:
    case 0b1100:
    case 0b1110:
      return with_memory(word);
    case 0b0111:
    case 0b1111:
      return with_vector(word);
    default:
      return {};
  }
}

}  // namespace

MachineInstruction read_a64_instruction(std::span<const std::byte> bytes, Addr at) noexcept {
  constexpr std::uint8_t k_length = 4;
  if (bytes.size() < k_length) return {};
  const Word word(ByteReader(bytes.first(k_length), false).u32());  // in either byte order of data
  MachineInstruction out;
  if (const Distance distance = distance_of(word); distance.size != 0) {
    out.effect = distance.effect;
    out.target = at + static_cast<Addr>(std::int64_t{word.signed_field(distance.at, distance.size)} * k_length);
  } else {
    out = read(word);
  }
  out.length = k_length;
  out.pads = word.is(~0u, 0xd503'201f);
  return out;
}

}  // namespace jitunwind::arch
