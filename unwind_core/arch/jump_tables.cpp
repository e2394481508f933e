// The jumps of switches, as compilers make them for code at any address: an index that a comparison bounds chooses a
// distance of 4 bytes, which is added to the address of its table.
//
//   cmp eax,5 / ja other / lea rdx,[rip+table] / movsxd rax,[rdx+rax*4] / add rax,rdx / jmp rax
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/a64_encoding_p.h"
#include "jitunwind/unwind_core/arch/instruction.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/arch/x86_encoding_p.h"
#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::arch {
namespace {

/// The value of a register on the way to the jump.
struct SwitchValue {
  enum class Is : std::uint8_t {
    other,
    address,  ///< `table.at`
    bounded,  ///< less than `table.count`
    entry,    ///< of the table
    target,   ///< the code that an entry leads to
  };
  Is is = Is::other;
  JumpTable table{};

  static constexpr SwitchValue address(Addr at) noexcept { return {Is::address, {.at = at}}; }
  static constexpr SwitchValue bounded(std::uint64_t count) noexcept {
    if (count == 0 || count > JumpTable::k_longest) return {};
    return {Is::bounded, {.count = static_cast<std::uint32_t>(count)}};
  }
  /// An entry of the table at an address, that the index chooses.
  static constexpr SwitchValue entry(const SwitchValue& at, const SwitchValue& index) noexcept {
    if (at.is != Is::address) return {};
    const bool is_open = index.is != Is::bounded || at.table.is_open;
    const std::uint32_t count = index.is != Is::bounded ? JumpTable::k_longest : index.table.count;
    return {Is::entry, {.at = at.table.at, .base = at.table.at, .count = count, .is_open = is_open}};
  }
  JumpTable target_table() const noexcept { return is == Is::target ? table : JumpTable{}; }
};

/// A comparison of a register with a number.
struct SwitchBound {
  unsigned code;
  std::uint64_t number;
};

/// The registers before an instruction on the way, by the numbers that instructions have.
template <std::size_t k_count>
class SwitchRegisters {
 protected:
  /// Behind a branch: the register is at most, or less than, what it was compared with. Bounds before other branches may
  /// be those of something else.
  void bound(bool is_at_most, bool is_less) noexcept {
    for (SwitchValue& known : registers_)
      if (known.is != SwitchValue::Is::address) known = {};
    if (!compared_ || !(is_at_most || is_less)) return;
    const unsigned origin = origins_[compared_->code];
    for (unsigned code = 0; code < k_count; ++code)
      if (code == compared_->code || (origin != 0 && origins_[code] == origin))
        registers_[code] = SwitchValue::bounded(compared_->number + (is_at_most ? 1 : 0));
  }
  void set(unsigned code, const SwitchValue& value) noexcept {
    registers_[code] = value;
    if (value.is == SwitchValue::Is::address) addresses_[code] = value.table.at;
  }
  /// The address that the register has, or else the last one that it had: compilers keep it over calls and jumps, and
  /// put it there in front of a loop. A table that is found by it is open.
  SwitchValue address_in(unsigned code) const noexcept {
    const SwitchValue& known = registers_[code];
    if (known.is == SwitchValue::Is::address || addresses_[code] == 0) return known;
    return {SwitchValue::Is::address, {.at = addresses_[code], .is_open = true}};
  }
  /// Both registers have the same value.
  void copy(unsigned to, unsigned from) noexcept {
    if (origins_[from] == 0) origins_[from] = ++last_origin_;
    origins_[to] = origins_[from];
  }

  std::array<SwitchValue, k_count> registers_{};
  std::array<Addr, k_count> addresses_{};    // the last in each register; 0: there was none
  std::array<unsigned, k_count> origins_{};  // registers with one number are copies; 0: of none
  unsigned last_origin_ = 0;
  std::optional<SwitchBound> compared_;
};

/// `Registers` has pass(code, instruction, at, is_taken), for each instruction but the last, and table_of(code) for that.
template <class Registers>
JumpTable find_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept {
  Registers registers;
  for (std::size_t n = 0; n < way.size(); ++n) {
    auto [code, at] = way[n];
    while (!code.empty()) {
      const MachineInstruction i = arch.read_instruction(code, at);
      if (i.length == 0 || i.length > code.size()) return {};
      const bool is_last = i.length == code.size(), is_jump = is_last && n + 1 == way.size();
      if (is_jump) return i.operand.kind == JumpOperand::Kind::value ? registers.table_of(code) : JumpTable{};
      registers.pass(code, i, at, is_last);
      at += i.length;
      code = code.subspan(i.length);
    }
  }
  return {};
}

using Effect = MachineInstruction::Effect;
using x86_code::Map;
using x86_code::Parts;

/// It knows of a register what the instructions on the way tell.
class X86SwitchRegisters : SwitchRegisters<16> {
 public:
  /// The table of a jump to the value of a register.
  JumpTable table_of(std::span<const std::byte> code) const noexcept {
    Parts p;
    return read_parts(code, p) ? registers_[p.rm & 15].target_table() : JumpTable{};
  }

  void pass(std::span<const std::byte> code, const MachineInstruction& i, Addr at, bool is_taken) noexcept {
    Parts p;
    if (!read_parts(code, p)) return;
    if (i.effect == Effect::branch) return bound_by(p, is_taken);
    if (!keeps_flags(p) || (compared_ && writes(i, x86_64_general(compared_->code)))) compared_.reset();
    if (p.map == Map::one_byte && !p.is_vector && compare(p)) return;
    const bool may_be_known = i.effect == Effect::none || i.effect == Effect::set;
    const Known made = may_be_known ? value_of(p, at + i.length) : Known{};
    if (i.effect == Effect::call || !i.goes_on()) registers_ = {}, origins_ = {};
    const bool copies = may_be_known && is_copy(p);
    for (unsigned code = 0; code < registers_.size(); ++code)
      if (writes(i, x86_64_general(code))) {
        registers_[code] = {};
        if (!(copies && p.reg == p.rm)) origins_[code] = 0;
      }
    if (made.is != Is::other) set(target_, made);
    if (copies) p.opcode == 0x89 ? copy(p.rm, p.reg) : copy(p.reg, p.rm);
  }

 private:
  using Known = SwitchValue;
  using Is = Known::Is;

  static bool writes(const MachineInstruction& i, RegNum reg) noexcept {
    const bool names = i.reg == reg || i.second == reg || i.base == reg;
    return (i.written >> place_of(reg) & 1) != 0 || (names && i.effect != Effect::store && i.effect != Effect::push);
  }

  /// mov between registers of 4 or 8 bytes. Compilers compare either with a small number.
  static bool is_copy(const Parts& p) noexcept {
    const bool moves = p.map == Map::one_byte && !p.is_vector && (p.opcode == 0x89 || p.opcode == 0x8b);
    return moves && p.is_register() && !p.operand_size;
  }
  /// mov, lea, movzx and movsx, which stand between the comparison and its branch as well.
  static bool keeps_flags(const Parts& p) noexcept {
    const unsigned op = p.opcode;
    if (p.is_vector) return false;
    if (p.map == Map::two_byte) return op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf;
    const bool moves = (op >= 0x88 && op <= 0x8b) || op == 0x8d || op == 0x63 || (op >= 0xb0 && op <= 0xbf);
    return p.map == Map::one_byte && (moves || ((op == 0xc6 || op == 0xc7) && p.group() == 0));
  }

  /// cmp with a number. True: it was one.
  bool compare(const Parts& p) noexcept {
    const bool is_group = (p.opcode >= 0x80 && p.opcode <= 0x83) && p.group() == 7 && p.is_register();
    const bool is_ax = p.opcode == 0x3c || p.opcode == 0x3d;
    if (!is_group && !is_ax) return false;
    compared_ = {is_ax ? 0 : p.rm, static_cast<std::uint64_t>(p.immediate)};
    return true;
  }
  /// ja and jae go on, jbe and jb jump with a small register.
  void bound_by(const Parts& p, bool is_taken) noexcept {
    constexpr unsigned k_b = 2, k_ae = 3, k_be = 6, k_a = 7;
    const unsigned condition = p.opcode & 15;
    bound(condition == (is_taken ? k_be : k_a), condition == (is_taken ? k_b : k_ae));
  }
  /// The value that the instruction puts into target_.
  Known value_of(const Parts& p, Addr next) noexcept {
    if (p.is_vector || p.address_size) return {};
    const Known& rm = registers_[p.rm & 15];
    if (p.map == Map::two_byte) {  // movzx
      target_ = p.reg;
      return (p.opcode == 0xb6 || p.opcode == 0xb7) && p.is_register() && rm.is == Is::bounded ? rm : Known{};
    }
    if (p.map != Map::one_byte) return {};
    target_ = p.opcode == 0x63 || p.opcode == 0x8b || p.opcode == 0x8d || p.opcode == 0x03 ? p.reg : p.rm;
    const Known& reg = registers_[p.reg & 15];
    switch (p.opcode) {
      case 0x01:
      case 0x03:
        return p.is_register() && p.w ? sum(p.reg & 15, p.rm & 15) : Known{};
      case 0x63:
        return p.is_memory() ? entry(p) : Known{};
      case 0x81:
      case 0x83:  // and
        if (p.group() != 4 || !p.is_register()) return {};
        return Known::bounded(static_cast<std::uint64_t>(p.immediate) + 1);
      case 0x89:
        return p.is_register() ? reg : Known{};
      case 0x8b:
        return p.is_register() ? rm : Known{};
      case 0x8d:
        return p.is_rip && p.w ? Known::address(next + static_cast<Addr>(p.displacement)) : Known{};
      default:
        return {};
    }
  }
  Known entry(const Parts& p) const noexcept {
    if (!p.w || !p.has_base || !p.has_index || p.scale != 4 || p.displacement != 0) return {};
    return Known::entry(address_in(p.base & 15), registers_[p.index & 15]);
  }
  Known sum(unsigned one, unsigned other) const noexcept {
    if (registers_[one].is != Is::entry) std::swap(one, other);
    const Known &entry = registers_[one], table = address_in(other);
    if (entry.is != Is::entry || table.is != Is::address || entry.table.at != table.table.at) return {};
    return {Is::target, entry.table};
  }

  unsigned target_ = 0;
};

// The jumps of switches on AArch64: an index that a comparison bounds chooses a distance of 1, 2 or 4 bytes, which is
// scaled and added to an address in the code, or to that of its table.
//
//   gcc    cmp w0,5 / b.hi other / adrp+add x1,table / ldrb w0,[x1,w0,uxtw] / adr x1,case / add x0,x1,w0,sxtb 2 / br x0
//   clang  cmp w0,5 / b.hi other / adrp+add x9,table / adr x10,case / ldrb w11,[x9,x8] / add x10,x10,x11,lsl 2 / br x10

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
}  // namespace jitunwind::arch

namespace jitunwind {

JumpTable read_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept {
  if (arch.read_instruction == &arch::read_a64_instruction) return arch::find_jump_table<arch::A64SwitchRegisters>(arch, way);
  if (arch.read_instruction != &arch::read_x86_64_instruction) return {};
  return arch::find_jump_table<arch::X86SwitchRegisters>(arch, way);
}

}  // namespace jitunwind
