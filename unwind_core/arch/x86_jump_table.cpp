// The jumps of switches, as compilers make them for code at any address: an index that a comparison bounds chooses a
// distance of 4 bytes, which is added to the address of its table.
//
//   cmp eax,5 / ja other / lea rdx,[rip+table] / movsxd rax,[rdx+rax*4] / add rax,rdx / jmp rax
#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/arch/jump_table_p.h"
#include "jitunwind/unwind_core/arch/x86_encoding_p.h"

namespace jitunwind {
namespace arch {
namespace {

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

}  // namespace
}  // namespace arch

JumpTable read_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept {
  if (arch.read_instruction == &arch::read_a64_instruction) return arch::read_a64_jump_table(arch, way);
  if (arch.read_instruction != &arch::read_x86_64_instruction) return {};
  return arch::find_jump_table<arch::X86SwitchRegisters>(arch, way);
}

}  // namespace jitunwind
