// The frame state at one boundary between instructions: the places of SP, the CFA and the caller's register values.
//
// Values are followed symbolically. An address is a known distance from a base. Base 0 is the CFA; any other base is an
// unknown SP, made by one instruction (and rsp,-64; sub rsp,rax) or by a merge of paths.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

using BaseId = std::uint32_t;
inline constexpr BaseId k_cfa_base = 0;
/// Bit of a base: an SP that may be above the SP it was made from.
inline constexpr BaseId k_loose_base = BaseId{1} << 31;
/// Bases made by the instruction with this index, which lowers or raises SP, and by a merge of paths before it.
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
    entry,    ///< value of register `reg` when the procedure was entered; the return address for 16
    address,  ///< base + offset
    code,     ///< address of label `base`
    amount,   ///< amount by which SP was lowered to `base`
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
  /// The value is stale once an instruction has made the base a second time.
  bool depends_on(BaseId made) const noexcept {
    return base == made && (kind == Kind::address || kind == Kind::amount);
  }
  friend bool operator==(const Value&, const Value&) = default;
};

/// Memory at base + offset holds a known value. Slots are in the order of bases, each from its highest offset down, so
/// that SP adds and removes slots at the end.
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
  /// The state at a procedure's first instruction.
  static FrameState at_entry(const Arch& arch, RegSet preserved);

  /// Registers that the caller relies on.
  RegSet preserved() const noexcept { return preserved_; }
  const Value& reg(RegNum reg) const noexcept { return registers_[reg]; }
  /// SP, which is always an address: an instruction that gives SP any other value is refused.
  const Value& sp() const noexcept { return registers_[sp_]; }
  /// Registers that hold an address at a known distance to the CFA.
  RegSet cfa_registers() const noexcept { return cfa_registers_; }
  const std::vector<Slot>& slots() const noexcept { return slots_; }
  /// Number of slots that hold the register's value at entry.
  std::uint32_t slots_of(RegNum reg) const noexcept { return slots_of_[reg]; }
  /// SP, another register, or a slot that is found from SP holds an address at a known distance to the CFA.
  bool knows_cfa() const noexcept;
  /// Value of the 8 bytes (16 for vector registers) at the address; unknown if nothing is recorded.
  Value memory(const Value& address, std::int64_t displacement, std::uint32_t size) const noexcept;

  bool same_as(const FrameState& other) const noexcept;
  /// A counter that grows with every change by an effect; its start is arbitrary.
  std::uint64_t changes() const noexcept { return changes_; }

  /// Applies an effect; `id` is base_made_by() the instruction. False, with the reason, when the frame is lost by it.
  bool apply(const Effect& effect, BaseId id, std::string& why);
  /// Raises SP. Memory below it is then lost, except for the red zone.
  void raise_sp(std::int64_t bytes);
  /// SP was proved equal to the register.
  void equate_sp(RegNum reg) {
    if (registers_[reg].is_address()) set_sp(Value(registers_[reg]));
  }
  /// Drops the values that a callee may overwrite: scratch registers and memory below SP.
  void forget_what_callees_use();

  /// Keeps the values that both states agree on; different SPs become the base `join`. False, with the reason, when no
  /// other way to the CFA remains or when the conventions differ.
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
  RegSet known_ = 0;  // registers with a known value
  RegSet cfa_registers_ = 0;
  std::array<Value, k_tracked_registers> registers_{};
  Slots slots_;
  std::array<std::uint32_t, k_tracked_registers> slots_of_{};
  /// The SP before it was lowered, while some register holds the amount: a few, the latest last.
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
