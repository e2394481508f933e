// The jumps of switches, as compilers make them for code at any address: an index that a comparison bounds chooses a
// distance of 4 bytes, which is added to the address of its table.
//
//   cmp eax,5 / ja other / lea rdx,[rip+table] / movsxd rax,[rdx+rax*4] / add rax,rdx / jmp rax
#include <array>
#include <optional>

#include "jitunwind/unwind_core/arch/instruction_p.h"
#include "jitunwind/unwind_core/arch/x86_encoding_p.h"

namespace jitunwind {
namespace arch {
namespace {

using Effect = MachineInstruction::Effect;
using x86_code::Map;
using x86_code::Parts;

constexpr std::int64_t k_most_entries = 4096;

/// The registers before an instruction, as far as the instructions before it tell.
class SwitchRegisters {
 public:
  /// The table of a jump to the value of the register.
  JumpTable table_of(unsigned code) const noexcept {
    const Known& known = registers_[code];
    return known.is == Is::target ? JumpTable{known.table, known.count} : JumpTable{};
  }

  void pass(const Parts& p, const MachineInstruction& i, Addr next) noexcept {
    if (i.effect == Effect::branch) return bound_by(p);
    compared_.reset();
    if (p.map == Map::one_byte && !p.is_vector && compare(p)) return;
    const std::optional<Known> made = i.effect == Effect::none || i.effect == Effect::set ? value_of(p, next) : Known{};
    if (i.effect == Effect::call || !i.goes_on()) registers_ = {};
    for (unsigned code = 0; code < registers_.size(); ++code)
      if (writes(i, x86_64_general(code))) registers_[code] = {};
    if (made && made->is != Is::other) registers_[target_] = *made;
  }

 private:
  enum class Is : std::uint8_t { other, table, bounded, entry, target };
  struct Known {
    Is is = Is::other;
    Addr table = 0;
    std::uint32_t count = 0;
  };

  static bool writes(const MachineInstruction& i, RegNum reg) noexcept {
    const bool names = i.reg == reg || i.second == reg || i.base == reg;
    return (i.written >> place_of(reg) & 1) != 0 || (names && i.effect != Effect::store && i.effect != Effect::push);
  }
  static bool is_small(std::int64_t number) noexcept { return number >= 0 && number < k_most_entries; }

  /// cmp with a number. True: it was one.
  bool compare(const Parts& p) noexcept {
    const bool is_group = (p.opcode >= 0x80 && p.opcode <= 0x83) && p.group() == 7 && p.is_register();
    const bool is_ax = p.opcode == 0x3c || p.opcode == 0x3d;
    if ((!is_group && !is_ax) || !is_small(p.immediate)) return false;
    compared_ = {is_ax ? 0 : p.rm, static_cast<std::uint32_t>(p.immediate)};
    return true;
  }
  /// ja, and jae, go on with a register that is at most, or less than, what it was compared with. Bounds before other
  /// branches may be those of something else.
  void bound_by(const Parts& p) noexcept {
    const unsigned condition = p.opcode & 15;
    for (Known& known : registers_)
      if (known.is != Is::table) known = {};
    if (!compared_ || (condition != 7 && condition != 3)) return;
    const std::uint32_t count = compared_->number + (condition == 7 ? 1 : 0);
    if (count != 0) registers_[compared_->code] = {Is::bounded, 0, count};
  }
  /// The value that the instruction puts into target_.
  std::optional<Known> value_of(const Parts& p, Addr next) noexcept {
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
        return p.is_register() && p.w ? sum(reg, rm) : Known{};
      case 0x63:
        return p.is_memory() ? entry(p) : Known{};
      case 0x81:
      case 0x83:  // and
        if (p.group() != 4 || !p.is_register() || !is_small(p.immediate)) return {};
        return Known{Is::bounded, 0, static_cast<std::uint32_t>(p.immediate) + 1};
      case 0x89:
        return p.is_register() ? reg : Known{};
      case 0x8b:
        return p.is_register() ? rm : Known{};
      case 0x8d:
        return p.is_rip && p.w ? Known{Is::table, next + static_cast<Addr>(p.displacement), 0} : Known{};
      default:
        return {};
    }
  }
  Known entry(const Parts& p) const noexcept {
    if (!p.w || !p.has_base || !p.has_index || p.scale != 4 || p.displacement != 0) return {};
    const Known &base = registers_[p.base & 15], &index = registers_[p.index & 15];
    if (base.is != Is::table || index.is != Is::bounded) return {};
    return {Is::entry, base.table, index.count};
  }
  static Known sum(const Known& one, const Known& other) noexcept {
    const Known& entry = one.is == Is::entry ? one : other;
    const Known& table = one.is == Is::entry ? other : one;
    if (entry.is != Is::entry || table.is != Is::table || entry.table != table.table) return {};
    return {Is::target, entry.table, entry.count};
  }

  struct Compared {
    unsigned code;
    std::uint32_t number;
  };
  std::array<Known, 16> registers_{};
  std::optional<Compared> compared_;
  unsigned target_ = 0;
};

}  // namespace
}  // namespace arch

JumpTable read_jump_table(const Arch& arch, std::span<const std::byte> code, Addr at) noexcept {
  if (arch.read_instruction != &arch::read_x86_64_instruction) return {};
  arch::SwitchRegisters registers;
  for (;;) {
    arch::Parts parts;
    if (!read_parts(code, parts)) return {};
    const MachineInstruction i = arch.read_instruction(code, at);
    if (i.length == 0 || i.length > code.size()) return {};
    if (i.length == code.size())
      return i.operand.kind == JumpOperand::Kind::value ? registers.table_of(parts.rm & 15) : JumpTable{};
    at += i.length;
    registers.pass(parts, i, at);
    code = code.subspan(i.length);
  }
}

}  // namespace jitunwind
