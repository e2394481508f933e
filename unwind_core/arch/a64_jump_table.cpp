// The jumps of switches on AArch64: an index that a comparison bounds chooses a distance of 1, 2 or 4 bytes, which is
// scaled and added to an address in the code, or to that of its table.
//
//   gcc    cmp w0,5 / b.hi other / adrp+add x1,table / ldrb w0,[x1,w0,uxtw] / adr x1,case / add x0,x1,w0,sxtb 2 / br x0
//   clang  cmp w0,5 / b.hi other / adrp+add x9,table / adr x10,case / ldrb w11,[x9,x8] / add x10,x10,x11,lsl 2 / br x10
#include "jitunwind/unwind_core/arch/a64_encoding_p.h"
#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/arch/jump_table_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::arch {
namespace {

using namespace a64_code;
using Effect = MachineInstruction::Effect;

Word switch_word(std::span<const std::byte> code) noexcept { return Word(ByteReader(code.first(4), false).u32()); }

/// It knows of a register what the instructions on the way tell.
class A64SwitchRegisters : SwitchRegisters<32> {
 public:
  JumpTable table_of(std::span<const std::byte> code) const noexcept {
    return registers_[switch_word(code).field(5, 5)].target_table();
  }

  void pass(std::span<const std::byte> code, const MachineInstruction& i, Addr at, bool is_taken) noexcept {
    const Word word = switch_word(code);
    if (i.effect == Effect::branch) return bound_by(word, is_taken);
    compared_.reset();
    if (word.is(0x7fc0'001f, 0x7100'001f)) {  // cmp with a number
      compared_ = {word.field(5, 5), word.field(10, 12)};
      return;
    }
    if (i.effect == Effect::call || !i.goes_on()) registers_ = {};
    const Known made = value_of(word, at);
    forget(word);
    registers_[word.field(0, 5)] = made;
    registers_[k_x31] = {};
  }

 private:
  using Known = SwitchValue;
  using Is = Known::Is;

  /// Other registers than the first that loads, and all but common ones of memory, may write.
  void forget(Word word) noexcept {
    const bool is_memory = word.is(0x0a00'0000, 0x0800'0000);
    const bool is_common = word.is(0x3b00'0000, 0x3900'0000) || word.is(0x3b20'0c00, 0x3820'0800);
    if (!is_memory || is_common) return;
    for (const unsigned at : {5u, 10u, 16u}) registers_[word.field(at, 5)] = {};
  }

  /// b.hi and b.hs go on, b.ls and b.lo jump with a small register.
  void bound_by(Word word, bool is_taken) noexcept {
    constexpr unsigned k_hs = 2, k_lo = 3, k_hi = 8, k_ls = 9;
    const unsigned condition = word.field(0, 4);
    const bool is_conditional = word.is(0xff00'0010, 0x5400'0000);
    bound(is_conditional && condition == (is_taken ? k_ls : k_hi), is_conditional && condition == (is_taken ? k_lo : k_hs));
    registers_[k_x31] = {};
  }

  Known value_of(Word word, Addr at) const noexcept {
    const Known& first = registers_[word.field(5, 5)];
    const Known& second = registers_[word.field(16, 5)];
    if (word.is(0x1f00'0000, 0x1000'0000)) {  // adr, adrp
      const std::int64_t distance = word.signed_field(5, 19) * 4 + static_cast<std::int64_t>(word.field(29, 2));
      const bool is_page = word.bit(31);
      return Known::address((is_page ? at & ~Addr{0xfff} : at) + static_cast<Addr>(is_page ? distance * 4096 : distance));
    }
    if (word.is(0xff80'0000, 0x9100'0000) && first.is == Is::address)  // add a number
      return Known::address(first.table.at + (Addr{word.field(10, 12)} << (word.bit(22) ? 12 : 0)));
    if (word.is(0x7fe0'ffe0, 0x2a00'03e0))  // mov
      return second.is == Is::bounded || word.bit(31) ? second : Known{};
    const bool masks = word.is(0x7f80'0000, 0x1200'0000) && word.field(16, 6) == 0 && word.bit(22) == word.bit(31);
    if (masks && word.field(10, 6) < 12) return Known::bounded(2u << word.field(10, 6));  // and with ones
    const bool cuts = word.is(0x7f80'0000, 0x5300'0000) && word.field(10, 6) >= word.field(16, 6);
    if (cuts && word.field(10, 6) - word.field(16, 6) < 12)  // ubfx, uxtb
      return Known::bounded(2u << (word.field(10, 6) - word.field(16, 6)));
    if (word.is(0x3f20'0c00, 0x3820'0800)) return entry(word, first, second);
    return sum(word, first, second);
  }

  /// A load from the table.
  static Known entry(Word word, const Known& table, const Known& index) noexcept {
    const unsigned size = word.field(30, 2), operation = word.field(22, 2);
    const bool is_right = size < 3 && operation != 0 && (size == 0 || word.bit(12));
    if (!is_right) return {};
    Known out = Known::entry(table, index);
    out.table.entry_size = static_cast<std::uint8_t>(1u << size);
    out.table.is_signed = operation != 1;
    return out;
  }

  /// add of an address and a shifted or extended register.
  static Known sum(Word word, const Known& first, const Known& second) noexcept {
    const bool is_extended = word.is(0xffe0'0000, 0x8b20'0000), is_shifted = word.is(0xffe0'0000, 0x8b00'0000);
    if (!is_extended && !is_shifted) return {};
    const unsigned shift = is_extended ? word.field(10, 3) : word.field(10, 6), extension = word.field(13, 3);
    const bool is_swapped = is_shifted && shift == 0 && first.is == Is::entry;
    const Known &base = is_swapped ? second : first, &chosen = is_swapped ? first : second;
    if (base.is != Is::address || chosen.is != Is::entry || shift > 3) return {};
    JumpTable out = chosen.table;
    if (is_extended && (extension & 3) != 3) {
      const unsigned width = 1u << (extension & 3);
      const bool is_of_all = width > out.entry_size && !out.is_signed;
      if (width != out.entry_size && !is_of_all) return {};
      if (!is_of_all) out.is_signed = (extension & 4) != 0;
    }
    out.base = base.table.at;
    out.shift = static_cast<std::uint8_t>(shift);
    return {Is::target, out};
  }
};

}  // namespace

JumpTable read_a64_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept {
  return find_jump_table<A64SwitchRegisters>(arch, way);
}

}  // namespace jitunwind::arch
