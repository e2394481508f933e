// What is known of a frame at one boundary between instructions: where SP, the CFA and the caller's register values
// are.
//
// Values are followed symbolically. An address is a known distance from a base: base 0 is the CFA, any other the
// unknown SP that one instruction (and rsp,-64; sub rsp,rax) made, or that there is where paths meet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

using BaseId = std::uint32_t;
inline constexpr BaseId k_cfa_base = 0;
/// Of an SP that may be above the one it was made from.
inline constexpr BaseId k_loose_base = BaseId{1} << 31;
/// The SPs of the instruction with this index: lowered or raised by it, or of paths that meet in front of it.
constexpr BaseId base_made_by(std::size_t instruction) noexcept { return static_cast<BaseId>(instruction) + 1; }
inline constexpr BaseId k_join = BaseId{1} << 30;
constexpr BaseId base_joined_at(std::size_t instruction) noexcept {
  return base_made_by(instruction) | k_join | k_loose_base;
}
/// Precondition: not the CFA.
constexpr std::size_t maker_of(BaseId base) noexcept { return (base & ~(k_loose_base | k_join)) - 1; }

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    entry,    ///< what register `reg` held when the procedure was entered; the return address for 16
    address,  ///< base + offset
    code,     ///< address of label `base`
    amount,   ///< by which SP was lowered to `base`
  };
  Kind kind = Kind::unknown;
  RegNum reg = k_no_reg;
  BaseId base = k_cfa_base;
  std::int64_t offset = 0;

  static Value entry(RegNum reg) noexcept { return {Kind::entry, reg, k_cfa_base, 0}; }
  static Value address(BaseId base, std::int64_t offset) noexcept { return {Kind::address, k_no_reg, base, offset}; }
  static Value code(LabelId label) noexcept { return {Kind::code, k_no_reg, label, 0}; }
  static Value amount(BaseId base) noexcept { return {Kind::amount, k_no_reg, base, 0}; }
  bool is_entry(RegNum r) const noexcept { return kind == Kind::entry && reg == r; }
  bool is_address() const noexcept { return kind == Kind::address; }
  bool is_cfa_address() const noexcept { return is_address() && base == k_cfa_base; }
  /// Of no meaning once an instruction has made the base anew.
  bool depends_on(BaseId made) const noexcept {
    return base == made && (kind == Kind::address || kind == Kind::amount);
  }
  friend bool operator==(const Value&, const Value&) = default;
};

/// Memory at base + offset holds a known value. In the order of bases, each from its highest offset down: what SP moves
/// over comes and goes at the end.
struct Slot {
  BaseId base = k_cfa_base;
  std::int64_t offset = 0;
  std::uint32_t size = 8;
  Value value;
  friend bool operator==(const Slot&, const Slot&) = default;
  friend bool is_before(const Slot& a, const Slot& b) noexcept {
    return a.base != b.base ? a.base < b.base : a.offset > b.offset;
  }
};

class FrameState {
 public:
  /// At a procedure's first instruction.
  static FrameState at_entry(const Arch& arch, RegSet preserved);

  /// Registers that the caller relies on.
  RegSet preserved() const noexcept { return preserved_; }
  const Value& reg(RegNum reg) const noexcept { return registers_[reg]; }
  /// Always an address: what gives SP any other value is refused.
  const Value& sp() const noexcept { return registers_[sp_]; }
  /// Registers that hold an address at a known distance to the CFA.
  RegSet cfa_registers() const noexcept { return cfa_registers_; }
  const std::vector<Slot>& slots() const noexcept { return slots_; }
  /// Slots that hold what the register held at entry.
  std::uint32_t slots_of(RegNum reg) const noexcept { return slots_of_[reg]; }
  /// SP, another register, or a slot that is found from SP holds an address at a known distance to the CFA.
  bool knows_cfa() const noexcept;
  /// Unknown when nothing is known of the 8 bytes (16 for vector registers) at the address.
  Value memory(const Value& address, std::int64_t displacement, std::uint32_t size) const noexcept;

  bool same_as(const FrameState& other) const noexcept;
  /// Grows with every difference that an effect makes; starts anywhere.
  std::uint64_t changes() const noexcept { return changes_; }

  /// `id`: base_made_by() the instruction. False, with the reason, when the frame is lost by it.
  bool apply(const Effect& effect, BaseId id, std::string& why);
  /// What is below SP then may be overwritten, but for the red zone.
  void raise_sp(std::int64_t bytes);
  /// SP turned out to be what the register holds.
  void equate_sp(RegNum reg) {
    if (registers_[reg].is_address()) set_sp(Value(registers_[reg]));
  }
  /// What is left of it once a callee may have used what callees may use: scratch registers and memory below SP.
  void forget_what_callees_use();

  /// Keeps what both agree on; SPs that differ become the base `join`. False, with the reason, when there is no other
  /// way to the CFA then, or when they disagree on the convention.
  bool merge(const FrameState& other, BaseId join, bool& changed, std::string& why);

 private:
  void put(RegNum reg, const Value& value) noexcept;
  using Slots = std::vector<Slot>;
  Slots::const_iterator first_below(BaseId base, std::int64_t offset) const noexcept;
  template <class Predicate>
  bool erase_slots(Slots::const_iterator begin, Slots::const_iterator end, Predicate predicate);
  void count(const Slot& slot, std::uint32_t by) noexcept {
    if (slot.value.kind == Value::Kind::entry) slots_of_[slot.value.reg] += by;
  }
  void move_sp(std::int64_t by) {
    registers_[sp_].offset += by;
    ++changes_;
  }
  void set_sp(const Value& value);
  void store(const Value& address, std::int64_t displacement, std::uint32_t size, const Value& value);
  void store(const Effect& effect);
  void drop_slots_below(std::int64_t bytes_below_sp);
  void drop_slots_of_base_below(const Value& sp);
  void push(std::int64_t bytes, const Value& value);
  Value low_half(RegNum reg) const noexcept;
  bool pop(const Effect& effect, std::string& why);
  bool copy(const Effect& effect, std::string& why);
  bool exchange(const Effect& effect, std::string& why);
  void lower(const Effect& effect, BaseId id);
  void raise(const Effect& effect, BaseId id);
  void make_sp(BaseId id);
  std::vector<Slot> slots_at_any_alignment(std::int64_t alignment, BaseId id) const;

  RegNum sp_ = k_no_reg;
  std::int64_t red_zone_ = 0;
  RegSet preserved_ = 0;
  RegSet known_ = 0;  // registers whose value is
  RegSet cfa_registers_ = 0;
  std::array<Value, k_tracked_registers> registers_{};
  Slots slots_;
  std::array<std::uint32_t, k_tracked_registers> slots_of_{};
  /// From where SP was lowered, by an amount that is still held somewhere: a few, the latest last.
  struct Lowering {
    BaseId to;
    Value from;
    friend bool operator==(const Lowering&, const Lowering&) = default;
  };
  std::vector<Lowering> lowerings_;
  std::uint64_t changes_ = 0;
};

/// "cfa-24", "an unknown address": for messages.
std::string value_text(const Value& value);

}  // namespace jitunwind::derivation
