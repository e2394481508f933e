// Instructions of AArch64 (Arm Architecture Reference Manual for A-profile, C4.1: the encoding by bits 28 to 25): as much
// as following a procedure that has no frame of its own takes. What moves SP, or writes the link register or the frame
// pointer, is unknown: who follows the code stops there.
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::arch {
namespace {

using Effect = MachineInstruction::Effect;

class Word {
 public:
  explicit constexpr Word(std::uint32_t bits) noexcept : bits_(bits) {}

  constexpr bool is(std::uint32_t mask, std::uint32_t value) const noexcept { return (bits_ & mask) == value; }
  constexpr bool bit(unsigned at) const noexcept { return (bits_ >> at & 1) != 0; }
  constexpr unsigned field(unsigned at, unsigned size) const noexcept { return bits_ >> at & ((1u << size) - 1); }
  /// A distance of so many bits, in bytes: they count instructions.
  constexpr std::int64_t distance(unsigned at, unsigned size) const noexcept {
    const auto sign = std::int64_t{1} << (size - 1);
    return ((static_cast<std::int64_t>(field(at, size)) ^ sign) - sign) * 4;
  }

 private:
  std::uint32_t bits_;
};

// Number 31 is SP or nothing.
constexpr unsigned k_x29 = 29, k_x30 = 30, k_x31 = 31;
constexpr bool is_of_frame(unsigned reg) { return reg == k_x29 || reg == k_x30; }
constexpr Effect none_unless(bool changes_the_frame) { return changes_the_frame ? Effect::unknown : Effect::none; }

/// "Data Processing -- Immediate": ADD, SUB and the logical ones without flags write SP.
Effect with_immediate(Word word) {
  const unsigned to = word.field(0, 5);
  const bool adds = word.is(0x1f00'0000, 0x1100'0000) && !word.bit(29);
  const bool combines = word.is(0x1f80'0000, 0x1200'0000) && word.field(29, 2) != 3;
  return none_unless(is_of_frame(to) || (to == k_x31 && (adds || combines)));
}

/// "Data Processing -- Register": of these ADD and SUB of an extended register write SP; conditional compares nothing.
Effect with_registers(Word word) {
  if (word.is(0x1fe0'0000, 0x1a40'0000)) return Effect::none;
  const unsigned to = word.field(0, 5);
  const bool adds = word.is(0x1fe0'0000, 0x0b20'0000) && !word.bit(29);
  return none_unless(is_of_frame(to) || (to == k_x31 && adds));
}

/// "Loads and Stores": the address may be written back, loads write their registers, and exclusive stores a third one.
Effect with_memory(Word word) {
  const unsigned first = word.field(0, 5), base = word.field(5, 5), second = word.field(10, 5);
  const bool is_pair = word.is(0x3a00'0000, 0x2800'0000), is_vector = word.bit(26);
  const bool is_single = word.is(0x3b20'0000, 0x3800'0000) || word.is(0x3b00'0000, 0x3900'0000) ||
                         word.is(0x3b20'0c00, 0x3820'0800);
  const bool is_vector_list = word.is(0xbe00'0000, 0x0c00'0000), is_literal = word.is(0x3b00'0000, 0x1800'0000);
  if (is_literal) return none_unless(!is_vector && is_of_frame(first));
  if (is_vector_list) return none_unless(word.bit(23) && (base == k_x31 || is_of_frame(base)));
  if (is_pair || is_single) {
    const bool writes_back = is_pair ? word.bit(23) : word.is(0x3b20'0400, 0x3800'0400);
    if (writes_back && (base == k_x31 || is_of_frame(base))) return Effect::unknown;
    const bool loads = is_pair ? word.bit(22) : word.field(22, 2) != 0;
    return none_unless(loads && !is_vector && (is_of_frame(first) || (is_pair && is_of_frame(second))));
  }
  return none_unless(is_of_frame(first) || is_of_frame(second) || is_of_frame(word.field(16, 5)) ||
                     base == k_x31 || is_of_frame(base));
}

/// "Branches, Exception Generating and System instructions", those that do not say where to.
Effect without_target(Word word) {
  if (word.is(~0u, 0xd65f'03c0) || word.is(~0u & ~0x400u, 0xd65f'0bff)) return Effect::ret;  // by the link register
  if (word.is(0xfeff'f000, 0xd63f'0000)) return Effect::call;
  if (word.is(0xfe00'0000, 0xd600'0000)) return Effect::stop;
  if (word.is(0xffe0'001f, 0xd400'0001)) return Effect::none;  // SVC
  if (word.is(0xff00'0000, 0xd500'0000)) return none_unless(word.bit(21) && is_of_frame(word.field(0, 5)));
  return word.is(0xff00'0000, 0xd400'0000) ? Effect::stop : Effect::unknown;
}

/// Bits of the distance to where an instruction goes, and where they are. Of none: it does not say.
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

Effect effect_of(Word word) {
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
    case 0b1111:  // vectors; some write a general register
      return none_unless(is_of_frame(word.field(0, 5)));
    default:
      return Effect::unknown;
  }
}

}  // namespace

MachineInstruction read_a64_instruction(std::span<const std::byte> bytes, Addr at) noexcept {
  constexpr std::uint8_t k_length = 4;
  MachineInstruction out;
  if (bytes.size() < k_length) return out;
  const Word word(ByteReader(bytes.first(k_length), false).u32());  // in either byte order of data
  out.length = k_length;
  if (const Distance distance = distance_of(word); distance.size != 0) {
    out.effect = distance.effect;
    out.target = at + static_cast<Addr>(word.distance(distance.at, distance.size));
  } else {
    out.effect = effect_of(word);
  }
  return out;
}

}  // namespace jitunwind::arch
