// The parts of instructions of x86, in 64-bit and in 32-bit mode, as they are encoded (Intel SDM, volume 2, chapter 2
// "Instruction format" and appendix A "Opcode map"; the encodings with VEX and EVEX prefixes there, too). Far transfers
// with an address in the code, and newer extensions that reuse encodings (APX), are unknown.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::arch::x86_code {

/// A set of opcodes.
class Opcodes {
 public:
  struct Range {
    unsigned first, last;
  };
  constexpr Opcodes(std::initializer_list<Range> ranges) {
    for (const Range& r : ranges)
      for (unsigned op = r.first; op <= r.last; ++op) words_[op / 64] |= std::uint64_t{1} << op % 64;
  }
  constexpr bool has(unsigned op) const { return (words_[op / 64] >> op % 64 & 1) != 0; }

 private:
  std::array<std::uint64_t, 4> words_{};
};

enum class Map : std::uint8_t { one_byte, two_byte, m38, m3a, fp16_5, fp16_6, vector_other };

/// Registers by their codes.
struct Parts {
  bool is_64 = true;          // the mode
  bool operand_size = false;  // 66
  bool address_size = false;  // 67
  std::uint8_t repeat = 0;    // f2, f3, or 0
  bool is_vector = false;     // VEX or EVEX
  std::uint8_t vvvv = 0;
  bool w = false;
  unsigned r = 0, x = 0, b = 0;  // 8, or 0
  bool has_rex = false;
  Map map = Map::one_byte;
  std::uint8_t opcode = 0;

  bool has_modrm = false;
  unsigned mod = 0;
  unsigned reg = 0;  // with r
  unsigned rm = 0;   // with b; for memory without SIB the base
  bool has_base = false, has_index = false, is_rip = false;  // none is set with addresses of 16 bits
  unsigned base = 0, index = 0, scale = 1;
  std::int64_t displacement = 0;
  std::int64_t immediate = 0;
  std::uint8_t length = 0;

  bool is_memory() const { return has_modrm && mod != 3; }
  bool is_register() const { return has_modrm && mod == 3; }
  unsigned group() const { return reg & 7; }
  bool is_whole() const { return is_64 ? w : !operand_size; }  // operands have the size of the machine's words
  bool is_long_branch() const { return map == Map::two_byte && !is_vector && opcode >= 0x80 && opcode <= 0x8f; }
};

/// False: the instruction is unknown, or cut off. `parts` has the mode.
[[gnu::visibility("default")]] bool read_parts(std::span<const std::byte> bytes, Parts& parts) noexcept;

}  // namespace jitunwind::arch::x86_code
