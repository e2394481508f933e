// What is known of a frame at one boundary between instructions: where SP, the CFA and the caller's register values
// are.
//
// Values are followed symbolically. An address is a known distance from a base: base 0 is the CFA, any other the
// unknown SP that one instruction (and rsp,-64; sub rsp,rax) made.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

namespace jitunwind::derivation {

using BaseId = std::uint32_t;
inline constexpr BaseId k_cfa_base = 0;

struct Value {
  enum class Kind : std::uint8_t {
    unknown,
    entry,    ///< what register `reg` held when the procedure was entered; the return address for 16
    address,  ///< base + offset
    code,     ///< address of label `base`
  };
  Kind kind = Kind::unknown;
  RegNum reg = k_no_reg;
  BaseId base = k_cfa_base;
  std::int64_t offset = 0;

  static Value entry(RegNum reg) noexcept { return {Kind::entry, reg, k_cfa_base, 0}; }
  static Value address(BaseId base, std::int64_t offset) noexcept { return {Kind::address, k_no_reg, base, offset}; }
  static Value code(LabelId label) noexcept { return {Kind::code, k_no_reg, label, 0}; }
  bool is_entry(RegNum r) const noexcept { return kind == Kind::entry && reg == r; }
  bool is_address() const noexcept { return kind == Kind::address; }
  bool is_cfa_address() const noexcept { return is_address() && base == k_cfa_base; }
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
  const std::vector<Slot>& slots() const noexcept { return slots_; }
  /// Slots that hold what the register held at entry.
  std::uint32_t slots_of(RegNum reg) const noexcept { return slots_of_[reg]; }
  /// Unknown when nothing is known of the 8 bytes (16 for vector registers) at the address.
  Value memory(const Value& address, std::int64_t displacement, std::uint32_t size) const noexcept;

  bool same_as(const FrameState& other) const noexcept;
  /// Grows with every difference that an effect makes; starts anywhere.
  std::uint64_t changes() const noexcept { return changes_; }

  /// `id` is unique to the instruction. False, with the reason, when the frame is lost by it.
  bool apply(const Effect& effect, BaseId id, std::string& why);
  /// What is left of it once a callee may have used what callees may use: scratch registers and memory below SP.
  void forget_what_callees_use();

  /// Keeps what both agree on. False, with the reason, when they disagree on SP or on the convention.
  bool merge(const FrameState& other, bool& changed, std::string& why);

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
  void drop_slots_below(std::int64_t bytes_below_sp);
  void push(const Effect& effect);
  bool pop(const Effect& effect, std::string& why);
  bool copy(const Effect& effect, std::string& why);
  void lower(BaseId id);

  RegNum sp_ = k_no_reg;
  std::int64_t red_zone_ = 0;
  RegSet preserved_ = 0;
  RegSet known_ = 0;  // registers whose value is
  std::array<Value, k_tracked_registers> registers_{};
  Slots slots_;
  std::array<std::uint32_t, k_tracked_registers> slots_of_{};
  std::uint64_t changes_ = 0;
};

/// "cfa-24", "an unknown address": for messages.
std::string describe_value(const Value& value);

}  // namespace jitunwind::derivation
