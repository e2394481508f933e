// The values of registers and of words of the stack before an instruction, as far as the instructions before it tell. A
// value is one that the caller left, or an address at a known distance from the CFA, or it is neither.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/arch/instruction.h"

namespace jitunwind::check_code {

/// Registers are named by their places (place_of).
using Place = std::uint8_t;
inline constexpr Place k_no_place = 0xff;

struct Value {
  enum class Kind : std::uint8_t {
    other,    ///< anything else, since the instruction at `since`
    unknown,  ///< it may be one of those below
    entry,    ///< the value of register `reg` when the procedure was entered
    address,  ///< base + offset
  };
  enum class Base : std::uint8_t {
    cfa,
    made,  ///< an SP of unknown distance from the CFA, below it: it was realigned, or lowered by a register
  };
  Kind kind = Kind::other;
  Base base = Base::cfa;
  Place reg = 0;
  bool differs = false;  ///< of unknown: paths differ
  std::int32_t offset = 0;
  std::uint32_t since = 0;  ///< offset of the instruction that put it there, plus 1; 0: none has

  static constexpr Value unknown() noexcept { return {Kind::unknown}; }
  static constexpr Value entry(Place reg) noexcept { return {Kind::entry, Base::cfa, reg}; }
  static constexpr Value address(Base base, std::int32_t offset) noexcept {
    return {Kind::address, base, 0, false, offset};
  }
  bool is_entry(Place r) const noexcept { return kind == Kind::entry && reg == r; }
  bool is_address() const noexcept { return kind == Kind::address; }
  bool is_cfa(std::int64_t o) const noexcept { return is_address() && base == Base::cfa && offset == o; }
  bool is_made() const noexcept { return is_address() && base == Base::made; }
  Value plus(std::int64_t amount) const noexcept;
  /// Compares all except `since`.
  bool same_as(const Value& o) const noexcept {
    return kind == o.kind && base == o.base && reg == o.reg && offset == o.offset;
  }
};

/// The constant facts about a CPU that effects of instructions depend on.
struct Machine {
  explicit Machine(const Arch& arch) noexcept;
  /// The place of a register that is followed; else k_no_place.
  Place place(RegNum reg) const noexcept { return reg < places.size() ? places[reg] : k_no_place; }
  /// The signature of the return address has the bit behind those of the places.
  std::uint64_t bit_of(RegNum reg) const noexcept {
    if (reg == arch.sign_state) return std::uint64_t{1} << k_register_places;
    return place(reg) == k_no_place ? 0 : std::uint64_t{1} << place(reg);
  }

  const Arch& arch;
  std::array<Place, 128> places;
  std::uint32_t followed = 0;   ///< a bit for each place
  std::uint32_t preserved = 0;  ///< of these, registers that calls preserve
  std::uint32_t passed = 0;     ///< of these, registers that calls may change
  Place sp, ra;
  std::int32_t word;
};

class CodeValues {
 public:
  /// The state at a procedure's first instruction.
  static CodeValues at_entry(const Machine& machine) noexcept;
  /// A state of which nothing is known, for rows that are taken at their word.
  static CodeValues none() noexcept;

  const Value& reg(Place place) const noexcept { return registers_[place]; }
  /// The value of a word of memory.
  Value memory(const Value& address, std::int64_t displacement) const noexcept;
  /// The value of a register at the entry may be in memory at a place that is not known.
  bool is_scattered(Place place) const noexcept { return place != k_no_place && (scattered_ >> place & 1) != 0; }
  enum class Signature : std::uint8_t { none, made, unknown };
  Signature signature() const noexcept { return signature_; }

  void put(Place place, const Value& value) noexcept { registers_[place] = value; }
  void store(const Value& address, std::int32_t word, Value value, bool is_of_frame = true) noexcept;
  /// A branch has told that SP is equal to the register.
  void equate_sp(RegNum reg, const Machine& machine) noexcept {
    if (const Value value = value_of(reg, machine); value.is_address()) registers_[machine.sp] = value;
  }
  void set_signature(Signature signature) noexcept { signature_ = signature; }

  /// Applies the effect of the instruction at `offset`.
  void apply(const MachineInstruction& instruction, const Machine& machine, std::uint32_t offset) noexcept;
  /// A call has returned since SP was known for sure; its callee may have popped arguments.
  bool may_have_popped() const noexcept { return may_have_popped_; }
  /// A register may have been restored from elsewhere than SP's known place: nothing is known for sure.
  bool is_doubtful() const noexcept { return is_doubtful_; }
  /// The last store has changed what is known of the stack.
  bool has_stored() const noexcept { return has_stored_; }
  /// Tells that SP is at this distance from the CFA, if it can be: callees pop whole words. True: they have popped
  /// some.
  bool pop_up_to(std::int64_t offset, const Machine& machine) noexcept;
  /// A row has told where SP is, and that is wrong: SP at this return is where nothing was pushed.
  bool returns_elsewhere(const Machine& machine) const noexcept;
  /// Whether both have the same frame: SP, registers that calls preserve, and memory.
  bool same_frame_as(const CodeValues& other, const Machine& machine) const noexcept;
  /// Whether the frame is that of a procedure's entry, and no other register has an address in it: a jump calls another
  /// procedure.
  bool is_call_frame(const Machine& machine) const noexcept;
  /// Counts the places of instructions from one that is so many bytes before. They are counted modulo 2^32.
  void count_from(std::uint32_t distance) noexcept;
  /// Keeps what both states agree on. True: this one has changed.
  bool merge(const CodeValues& other) noexcept;

 private:
  struct Slot {
    Value::Base base;
    std::int32_t offset;
    Value value;
  };
  static constexpr std::size_t k_slots = 28;

  Value value_of(RegNum reg, const Machine& machine) const noexcept;
  Value loaded(const Value& at, RegNum reg, bool is_by_sp, bool pops, const Machine& machine) noexcept;
  /// `moves`: it is SP, which is moved by a number.
  void set(RegNum reg, Value value, const Machine& machine, bool moves = false) noexcept;
  void set_sp(Value value, const Machine& machine, bool moves) noexcept;
  void make_sp(const Machine& machine) noexcept;
  void access(const MachineInstruction& i, const Machine& machine) noexcept;
  /// A call has returned: registers that it may change have other values.
  void forget_what_calls_change(const Machine& machine) noexcept;
  void overwrite(std::uint32_t places, const Machine& machine) noexcept;
  /// `likely`: its index, if both states have come from one.
  const Slot* find(Value::Base base, std::int64_t offset, std::size_t likely = 0) const noexcept;
  Value word_at(Value::Base base, std::int64_t offset, std::size_t likely = 0) const noexcept;
  bool merge_slots(const CodeValues& other) noexcept;
  template <class Predicate>
  void drop_slots(Predicate predicate) noexcept;

  std::array<Value, k_register_places> registers_;
  std::array<Slot, k_slots> slots_;
  std::uint8_t count_ = 0;
  bool may_have_popped_ = false;
  bool is_doubtful_ = false;
  bool has_stored_ = false;
  bool is_assumed_ = false;  ///< a row has told where SP is
  bool is_partial_ = false;  ///< words without a slot may hold anything
  Signature signature_ = Signature::none;
  std::uint32_t scattered_ = 0;
  std::uint32_t now_ = 0;
  /// A number that the last instructions have put into a register. It is not known for long: registers that calls do
  /// not preserve are not followed on every CPU.
  RegNum number_in_ = k_no_reg;
  std::int64_t number_ = 0;
};

}  // namespace jitunwind::check_code
