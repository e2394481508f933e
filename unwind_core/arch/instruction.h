// The effect of one machine instruction on the stack, the frame pointer and the flow of control, as
// Arch::read_instruction gives it. It has the details that are needed to follow code from a procedure's entry to a pc,
// and from there to its return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The source of the target of an indirect call or jump.
struct JumpOperand {
  enum class Kind : std::uint8_t {
    none,    ///< it is direct, or not known
    value,   ///< the value of register `base`
    memory,  ///< a word at base + index * scale + offset; without registers offset is the address
  };
  Kind kind = Kind::none;
  RegNum base = k_no_reg;
  RegNum index = k_no_reg;
  std::uint8_t scale = 1;
  std::int64_t offset = 0;
};

/// Registers that calls preserve, and the link register, have a place each: no two of them share one on any CPU whose
/// instructions are read.
inline constexpr std::size_t k_register_places = 32;
constexpr std::size_t place_of(RegNum reg) noexcept { return reg % k_register_places; }

/// Whether values of the register are followed: calls preserve it, or it is the link register.
constexpr bool is_followed(const Arch& arch, const RegisterInfo& reg) noexcept {
  return reg.dwarf == arch.ra ? !arch.ra_in_memory
                              : reg.preserved && reg.dwarf != arch.sp && reg.reg_class != RegClass::pseudo;
}

/// Registers that calls do not preserve may be omitted, as k_no_reg.
struct MachineInstruction {
  enum class Effect : std::uint8_t {
    unknown,  ///< unknown instruction: the code after it cannot be followed
    none,     ///< the stack stays, control continues
    push,     ///< SP -= amount; then a word of `reg` at SP, k_no_reg: of another source
    pop,      ///< `reg`, if there is one, = the word at SP; then SP += amount
    set,      ///< reg = base + amount, or base + index * step if there is an index
    number,   ///< reg = amount; or, if there is a base, which is reg, 16 of its bits are replaced, from bit `step` on
    exchange,  ///< reg and base
    compare,  ///< reg with base: a branch that follows may tell that they are equal
    escape,   ///< reg is copied to a register that is not followed
    store,    ///< the words from base + amount on = reg, second; then base += step
    load,     ///< reg, second = the words from base + amount on; then base += step
    enter,    ///< as push of the frame pointer, which is SP then; then SP -= amount
    leave,    ///< SP = frame pointer; then as pop of the frame pointer
    call,     ///< to `target` or by `operand`; returns with SP as it was
    branch,   ///< to `target`, or continues
    jump,     ///< to `target`, or by `operand`
    ret,      ///< to the word at SP, or by the link register, which is authenticated if there is a key()
    sign,     ///< the link register gets a signature over SP
    authenticate,  ///< the link register loses its signature
    stop,     ///< control does not continue
  };

  Effect effect = Effect::unknown;
  std::uint8_t length = 0;  ///< bytes; 0: unknown
  RegNum reg = k_no_reg;
  RegNum second = k_no_reg;
  RegNum base = k_no_reg;
  RegNum index = k_no_reg;  ///< load: its value counts in the address, too
  std::int64_t amount = 0;
  Addr target = 0;  ///< 0: not in the code
  JumpOperand operand{};
  std::uint32_t written = 0;  ///< registers that get values besides those above, a bit for each place
  std::int32_t step = 0;
  enum class If : std::uint8_t { any, equal, different };
  If condition = If::any;  ///< of a branch, behind a comparison
  bool pads = false;  ///< an instruction that compilers align code with

  /// Precondition: effect is sign, authenticate or ret, which have the key in their amount.
  SigningKey key() const noexcept { return static_cast<SigningKey>(amount); }
  /// Returns, or jumps out of the code: to a procedure that returns in its place, or by a table.
  bool leaves() const noexcept {
    return effect == Effect::ret || (effect == Effect::jump && operand.kind != JumpOperand::Kind::none);
  }
  bool goes_on() const noexcept {
    return effect != Effect::unknown && effect != Effect::jump && effect != Effect::ret && effect != Effect::stop;
  }
};

/// The table of a switch: the code of each case is at `base` plus an entry, which is shifted to the left.
struct JumpTable {
  Addr at = 0;
  Addr base = 0;
  std::uint32_t count = 0;  ///< 0: there is none
  bool is_open = false;     ///< nothing bounds the index: there may be fewer entries
  std::uint8_t entry_size = 4;
  std::uint8_t shift = 0;
  bool is_signed = true;

  static constexpr std::uint32_t k_longest = 4096;
};

/// Instructions one after the other.
struct CodePiece {
  std::span<const std::byte> bytes;
  Addr at = 0;
};

/// The table of the indirect jump that ends the way. Each other piece ends in a branch to the next one. The bytes may
/// be anything. Tables are known on x86-64 and AArch64.
JumpTable read_jump_table(const Arch& arch, std::span<const CodePiece> way) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
