#include <algorithm>
#include <bit>

#include "jitunwind/unwind_core/check/code_values_p.h"

namespace jitunwind::check_code {
namespace {

using Effect = MachineInstruction::Effect;
constexpr std::uint32_t bit(Place place) { return std::uint32_t{1} << place; }

}  // namespace

Value Value::plus(std::int64_t amount) const noexcept {
  constexpr std::int64_t k_farthest = std::int64_t{1} << 28;
  if (kind == Kind::entry && amount != 0) return {};
  if (kind != Kind::address) return *this;
  const std::int64_t sum = offset + amount;
  if (amount > k_farthest || amount < -k_farthest || sum > k_farthest || sum < -k_farthest) return unknown();
  Value value = *this;
  value.offset = static_cast<std::int32_t>(sum);
  return value;
}

Machine::Machine(const Arch& a) noexcept
    : arch(a), sp(static_cast<Place>(place_of(a.sp))), ra(static_cast<Place>(place_of(a.ra))), word(a.word_size) {
  places.fill(k_no_place);
  for (const RegisterInfo& reg : a.registers) {
    const bool is_scratch = a.ra_in_memory && reg.reg_class == RegClass::general && reg.dwarf < k_register_places;
    if (reg.dwarf >= places.size()) continue;
    if (!is_scratch && !is_followed(a, reg) && reg.dwarf != a.sp) continue;
    const Place place = places[reg.dwarf] = static_cast<Place>(place_of(reg.dwarf));
    followed |= bit(place);
    if (reg.dwarf == a.sp) continue;
    (reg.preserved && reg.dwarf != a.ra ? preserved : passed) |= bit(place);
  }
}

CodeValues CodeValues::none() noexcept {
  CodeValues values;
  values.registers_.fill(Value::unknown());
  values.is_partial_ = values.is_assumed_ = true;
  return values;
}

CodeValues CodeValues::at_entry(const Machine& machine) noexcept {
  CodeValues values;
  for (Place place = 0; place < k_register_places; ++place)
    values.registers_[place] = (machine.followed & bit(place)) != 0 ? Value::entry(place) : Value{};
  const Arch& arch = machine.arch;
  values.registers_[machine.sp] = Value::address(Value::Base::cfa, -arch.entry_cfa);
  if (arch.ra_in_memory) {
    values.registers_[machine.ra] = {};
    values.store(Value::address(Value::Base::cfa, 0).plus(arch.entry_ra), machine.word, Value::entry(machine.ra));
  }
  return values;
}

const CodeValues::Slot* CodeValues::find(Value::Base base, std::int64_t offset, std::size_t likely) const noexcept {
  if (likely < count_ && slots_[likely].offset == offset && slots_[likely].base == base) return &slots_[likely];
  for (std::size_t i = 0; i < count_; ++i)
    if (slots_[i].offset == offset && slots_[i].base == base) return &slots_[i];
  return nullptr;
}

Value CodeValues::memory(const Value& address, std::int64_t displacement) const noexcept {
  if (address.kind == Value::Kind::unknown) return address;
  if (!address.is_address()) return {};
  return word_at(address.base, address.offset + displacement);
}

Value CodeValues::word_at(Value::Base base, std::int64_t offset, std::size_t likely) const noexcept {
  if (const Slot* const slot = find(base, offset, likely)) return slot->value;
  const bool is_older = base == Value::Base::made && offset >= 0;  // than that SP
  return is_partial_ || is_older ? Value::unknown() : Value{};
}

template <class Predicate>
void CodeValues::drop_slots(Predicate predicate) noexcept {
  const auto end = slots_.begin() + count_;
  count_ = static_cast<std::uint8_t>(std::remove_if(slots_.begin(), end, predicate) - slots_.begin());
}

/// Stores through other pointers are not followed: code that overwrites saved registers by one is broken itself.
/// `is_of_frame`: the address counts from SP or from the frame pointer.
void CodeValues::store(const Value& address, std::int32_t word, Value value, bool is_of_frame) noexcept {
  const bool is_sure = address.is_address() && !address.is_made();
  has_stored_ = value.kind == Value::Kind::entry && !is_sure;
  if (has_stored_) scattered_ |= bit(value.reg);
  if (!address.is_address()) return;
  // A pointer may have been advanced in a loop, beyond what its register is known to be.
  if (!is_of_frame && (value.kind == Value::Kind::other || find(address.base, address.offset))) return;
  if (may_have_popped_ && is_of_frame) {
    if (value.kind == Value::Kind::other) return;
    is_doubtful_ |= value.kind != Value::Kind::unknown;
  }
  value.since = now_;
  bool is_there = false;
  for (std::size_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    const std::int64_t distance = std::int64_t{slot.offset} - address.offset;
    if (slot.base != address.base || distance <= -word || distance >= word) continue;
    slot.value = distance == 0 ? value : Value{};
    is_there |= distance == 0;
    has_stored_ = true;
  }
  if (is_there || (value.kind == Value::Kind::other && !is_partial_)) return;
  has_stored_ = true;
  if (count_ == k_slots) drop_slots([](const Slot& slot) { return slot.value.kind == Value::Kind::other; });
  if (count_ == k_slots)
    is_partial_ = true;
  else
    slots_[count_++] = {address.base, address.offset, value};
}

Value CodeValues::value_of(RegNum reg, const Machine& machine) const noexcept {
  const Place place = machine.place(reg);
  return place == k_no_place ? Value{} : registers_[place];
}

/// SP gets a value of unknown distance from the CFA. Addresses that counted from the last such value are lost.
void CodeValues::make_sp(const Machine& machine) noexcept {
  drop_slots([](const Slot& slot) { return slot.base == Value::Base::made; });
  for (Value& value : registers_)
    if (value.is_made()) value = Value::unknown();
  for (std::size_t i = 0; i < count_; ++i)
    if (slots_[i].value.is_made()) slots_[i].value = Value::unknown();
  registers_[machine.sp] = Value::address(Value::Base::made, 0);
  registers_[machine.sp].since = now_;
}

void CodeValues::set_sp(Value value, const Machine& machine, bool moves) noexcept {
  if (!value.is_address() && value.kind != Value::Kind::unknown) return make_sp(machine);
  may_have_popped_ &= moves;
  value.since = now_;
  registers_[machine.sp] = value;
}

bool CodeValues::pop_up_to(std::int64_t offset, const Machine& machine) noexcept {
  Value& sp = registers_[machine.sp];
  const std::int64_t popped = offset - sp.offset;
  if (!sp.is_cfa(sp.offset) || popped < 0 || popped % machine.word != 0) return false;
  may_have_popped_ = false;
  if (popped == 0) return false;
  sp = sp.plus(popped);
  return is_assumed_ = true;
}

bool CodeValues::returns_elsewhere(const Machine& machine) const noexcept {
  const Value& sp = registers_[machine.sp];
  return machine.arch.calls_push() && is_assumed_ && sp.is_cfa(sp.offset) && !find(sp.base, sp.offset);
}

/// The value of a word of the frame that is loaded into a register. If a callee has popped arguments, it may be another
/// word than it seems, in which the register was saved.
Value CodeValues::loaded(const Value& at, RegNum reg, bool is_by_sp, bool pops, const Machine& machine) noexcept {
  const Value value = memory(at, 0);
  const Place place = machine.place(reg);
  const bool restores = at.is_address() && place != k_no_place && (pops || (machine.preserved >> place & 1) != 0);
  const bool is_sure = !(is_by_sp && may_have_popped_) && !is_scattered(place);
  if (!restores || is_sure || value.is_entry(place)) return value;
  is_doubtful_ = true;
  return Value::unknown();
}

void CodeValues::set(RegNum reg, Value value, const Machine& machine, bool moves) noexcept {
  const Place place = machine.place(reg);
  if (place == k_no_place) return;
  if (place == machine.sp) return set_sp(value, machine, moves);
  value.since = now_;
  registers_[place] = value;
}

void CodeValues::overwrite(std::uint32_t places, const Machine& machine) noexcept {
  for (places &= machine.followed; places != 0; places &= places - 1) {
    const auto place = static_cast<Place>(std::countr_zero(places));
    if (place == machine.sp) {
      make_sp(machine);
      continue;
    }
    registers_[place] = is_scattered(place) ? Value::unknown() : Value{};
    registers_[place].since = now_;
  }
}

void CodeValues::access(const MachineInstruction& i, const Machine& machine) noexcept {
  const Value base = value_of(i.base, machine);
  const bool is_known = i.index == k_no_reg || !base.is_address();
  const Value first = is_known ? base.plus(i.amount) : Value::unknown(), second = first.plus(machine.word);
  if (i.effect == Effect::store) {
    const bool is_of_frame = i.base == machine.arch.sp || i.base == machine.arch.fp;
    store(first, machine.word, value_of(i.reg, machine), is_of_frame);
    const bool has_stored = has_stored_;
    if (i.second != k_no_reg) store(second, machine.word, value_of(i.second, machine), is_of_frame);
    has_stored_ |= has_stored;
  } else {
    const bool is_by_sp = i.base == machine.arch.sp;
    const Value one = loaded(first, i.reg, is_by_sp, false, machine);
    const Value two = loaded(second, i.second, is_by_sp, false, machine);
    if (i.reg != k_no_reg) set(i.reg, one, machine);
    if (i.second != k_no_reg) set(i.second, two, machine);
  }
  if (i.step != 0) set(i.base, base.plus(i.step), machine);
}

void CodeValues::forget_what_calls_change(const Machine& machine) noexcept {
  may_have_popped_ = machine.arch.calls_push();
  for (std::uint32_t places = machine.passed; places != 0; places &= places - 1)
    registers_[static_cast<std::size_t>(std::countr_zero(places))] = Value::unknown();  // some callees preserve more
  if (!machine.arch.ra_in_memory) overwrite(bit(machine.ra), machine);
  const Value& sp = registers_[machine.sp];
  if (sp.is_address()) drop_slots([&](const Slot& s) { return s.base == sp.base && s.offset < sp.offset; });
}

void CodeValues::apply(const MachineInstruction& i, const Machine& machine, std::uint32_t offset) noexcept {
  now_ = offset + 1;
  const Place sp = machine.sp;
  switch (i.effect) {
    case Effect::push: {
      const Value value = value_of(i.reg, machine);
      set_sp(registers_[sp].plus(-i.amount), machine, true);
      store(registers_[sp], machine.word, value);
      break;
    }
    case Effect::enter: {
      const Value value = value_of(i.reg, machine);
      set_sp(registers_[sp].plus(-machine.word), machine, true);
      store(registers_[sp], machine.word, value);
      set(i.reg, registers_[sp], machine);
      set_sp(registers_[sp].plus(-i.amount), machine, true);
      break;
    }
    case Effect::leave:
      set_sp(value_of(machine.arch.fp, machine), machine, false);
      [[fallthrough]];
    case Effect::pop: {
      const Value value = loaded(registers_[sp], i.reg, true, true, machine);
      set_sp(registers_[sp].plus(i.amount), machine, true);
      if (i.reg != k_no_reg) set(i.reg, value, machine);
      break;
    }
    case Effect::set:
      if (i.index == k_no_reg)
        set(i.reg, value_of(i.base, machine).plus(i.amount), machine, i.base == i.reg);
      else if (i.index == number_in_)
        set(i.reg, value_of(i.base, machine).plus((number_ % (std::int64_t{1} << 40)) * i.step), machine);
      else
        set(i.reg, {}, machine);
      break;
    case Effect::number:
      if (i.base == k_no_reg || i.base == number_in_) {
        const std::uint64_t kept = static_cast<std::uint64_t>(number_) & ~(std::uint64_t{0xffff} << i.step);
        number_ = i.base == k_no_reg ? i.amount : i.amount | static_cast<std::int64_t>(kept);
        number_in_ = i.reg;
      }
      break;
    case Effect::store:
    case Effect::load:
      access(i, machine);
      break;
    case Effect::exchange: {
      const Value value = value_of(i.reg, machine);
      set(i.reg, value_of(i.base, machine), machine);
      set(i.base, value, machine);
      break;
    }
    case Effect::call:
      forget_what_calls_change(machine);
      break;
    case Effect::escape:
      if (const Value value = value_of(i.reg, machine); value.kind == Value::Kind::entry) scattered_ |= bit(value.reg);
      break;
    case Effect::sign:
      if (!registers_[machine.ra].is_entry(machine.ra) || signature_ != Signature::none ||
          !registers_[sp].is_cfa(-machine.arch.entry_cfa))
        registers_[machine.ra] = Value::unknown();
      signature_ = Signature::made;
      break;
    case Effect::authenticate:
      signature_ = Signature::none;
      break;
    default:
      break;
  }
  if (i.written != 0) overwrite(i.written, machine);
  const bool keeps_number = i.effect == Effect::number || (i.effect == Effect::load && i.second != k_no_reg);
  if (!keeps_number) number_in_ = k_no_reg;
}

bool CodeValues::same_frame_as(const CodeValues& other, const Machine& machine) const noexcept {
  if (count_ != other.count_ || signature_ != other.signature_ || is_partial_ != other.is_partial_) return false;
  const std::uint32_t compared = machine.preserved | bit(machine.sp);
  for (std::uint32_t places = compared; places != 0; places &= places - 1) {
    const auto place = static_cast<std::size_t>(std::countr_zero(places));
    if (!registers_[place].same_as(other.registers_[place])) return false;
  }
  for (std::size_t i = 0; i < count_; ++i) {
    const Slot* const slot = other.find(slots_[i].base, slots_[i].offset, i);
    if (!slot || !slot->value.same_as(slots_[i].value)) return false;
  }
  return true;
}

bool CodeValues::is_call_frame(const Machine& machine) const noexcept {
  for (std::uint32_t places = machine.preserved; places != 0; places &= places - 1) {
    const auto place = static_cast<Place>(std::countr_zero(places));
    if (!registers_[place].is_entry(place)) return false;
  }
  for (std::uint32_t places = machine.passed; places != 0; places &= places - 1)
    if (registers_[static_cast<std::size_t>(std::countr_zero(places))].is_address()) return false;
  const Arch& arch = machine.arch;
  const Value ra = arch.ra_in_memory ? word_at(Value::Base::cfa, arch.entry_ra) : registers_[machine.ra];
  return registers_[machine.sp].is_cfa(-arch.entry_cfa) && ra.is_entry(machine.ra) && signature_ == Signature::none;
}

void CodeValues::count_from(std::uint32_t distance) noexcept {
  const auto count = [distance](Value& value) { value.since += value.since == 0 ? 0 : distance; };
  std::ranges::for_each(registers_, count);
  for (std::size_t i = 0; i < count_; ++i) count(slots_[i].value);
}

bool CodeValues::merge_slots(const CodeValues& other) noexcept {
  bool changed = false;
  Value differs = Value::unknown();
  differs.differs = true;
  for (std::size_t i = 0; i < count_; ++i) {
    Slot& slot = slots_[i];
    const Value there = other.word_at(slot.base, slot.offset, i);
    if (slot.value.same_as(there) || slot.value.kind == Value::Kind::unknown) continue;
    slot.value = differs;
    changed = true;
  }
  for (std::size_t i = 0; i < other.count_; ++i) {
    const Slot& slot = other.slots_[i];
    if (find(slot.base, slot.offset, i) || is_partial_ || slot.value.kind == Value::Kind::other) continue;
    if (count_ == k_slots)
      is_partial_ = true;
    else
      slots_[count_++] = {slot.base, slot.offset, differs};
    changed = true;
  }
  if (other.is_partial_ && !is_partial_) is_partial_ = changed = true;
  return changed;
}

bool CodeValues::merge(const CodeValues& other) noexcept {
  bool changed = merge_slots(other);
  changed |= (other.may_have_popped_ && !may_have_popped_) || (other.is_assumed_ && !is_assumed_);
  changed |= other.is_doubtful_ && !is_doubtful_;
  may_have_popped_ |= other.may_have_popped_;
  is_doubtful_ |= other.is_doubtful_;
  is_assumed_ |= other.is_assumed_;
  changed |= (other.scattered_ & ~scattered_) != 0;
  scattered_ |= other.scattered_;
  for (std::size_t place = 0; place < registers_.size(); ++place) {
    Value& value = registers_[place];
    if (value.same_as(other.registers_[place]) || value.kind == Value::Kind::unknown) continue;
    value = Value::unknown();
    value.differs = true;
    changed = true;
  }
  if (signature_ != other.signature_ && signature_ != Signature::unknown)
    signature_ = Signature::unknown, changed = true;
  return changed;
}

}  // namespace jitunwind::check_code
