#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"

#include <algorithm>

namespace jitunwind::derivation {
namespace {

constexpr std::uint32_t k_word = 8;

std::uint32_t size_of(RegNum reg) { return reg >= 17 ? 16 : k_word; }

}  // namespace

std::string describe_value(const Value& value) {
  if (!value.is_address()) return "an unknown value";
  if (value.base != k_cfa_base) return "an address of unknown distance to the cfa";
  return value.offset < 0 ? "cfa" + std::to_string(value.offset) : "cfa+" + std::to_string(value.offset);
}

FrameState FrameState::at_entry(const Arch& arch, RegSet preserved) {
  FrameState state;
  state.sp_ = arch.sp;
  state.red_zone_ = arch.red_zone;
  state.preserved_ = preserved;
  for (RegNum r = 0; r < k_tracked_registers; ++r) state.registers_[r] = Value::entry(r);
  state.registers_[arch.sp] = Value::address(k_cfa_base, -arch.entry_cfa);
  state.registers_[arch.ra] = {};
  state.known_ = ((RegSet{1} << k_tracked_registers) - 1) & ~set_of(arch.ra);
  state.slots_.push_back({k_cfa_base, arch.entry_ra, k_word, Value::entry(arch.ra)});
  state.count(state.slots_.back(), 1);
  return state;
}

Value FrameState::memory(const Value& address, std::int64_t displacement, std::uint32_t size) const noexcept {
  if (!address.is_address()) return {};
  const std::int64_t offset = address.offset + displacement;
  const auto found = first_below(address.base, offset + 1);
  const bool fits =
      found != slots_.end() && found->base == address.base && found->offset == offset && found->size == size;
  return fits ? found->value : Value{};
}

/// The first slot of the base that begins below `offset`, or what is behind its slots.
FrameState::Slots::const_iterator FrameState::first_below(BaseId base, std::int64_t offset) const noexcept {
  Slot wanted;
  wanted.base = base;
  wanted.offset = offset;
  return std::upper_bound(slots_.begin(), slots_.end(), wanted,
                          [](const Slot& a, const Slot& b) { return is_before(a, b); });
}

bool FrameState::same_as(const FrameState& other) const noexcept {
  return preserved_ == other.preserved_ && registers_ == other.registers_ && slots_ == other.slots_;
}

void FrameState::put(RegNum reg, const Value& value) noexcept {
  if (registers_[reg] == value) return;
  registers_[reg] = value;
  known_ = value.kind == Value::Kind::unknown ? known_ & ~set_of(reg) : known_ | set_of(reg);
  ++changes_;
}

template <class Predicate>
bool FrameState::erase_slots(Slots::const_iterator begin, Slots::const_iterator end, Predicate predicate) {
  const auto first = slots_.begin() + (begin - slots_.cbegin());
  const auto last = slots_.begin() + (end - slots_.cbegin());
  const auto gone = std::remove_if(first, last, [&](const Slot& slot) {
    if (!predicate(slot)) return false;
    count(slot, ~0u);
    return true;
  });
  if (gone == last) return false;
  slots_.erase(gone, last);
  ++changes_;
  return true;
}

void FrameState::store(const Value& address, std::int64_t displacement, std::uint32_t size, const Value& value) {
  // Stores through other pointers are the program's own: code that overwrites what it saved cannot be described.
  if (!address.is_address()) return;
  constexpr std::int64_t k_largest = 16;
  const std::int64_t begin = address.offset + displacement;
  const std::int64_t end = begin + std::int64_t{size};
  erase_slots(first_below(address.base, end), first_below(address.base, begin - k_largest + 1),
              [&](const Slot& s) { return s.offset < end && begin < s.offset + std::int64_t{s.size}; });
  if (value.kind == Value::Kind::unknown) return;
  const Slot slot{address.base, begin, size, value};
  slots_.insert(first_below(slot.base, slot.offset), slot);
  count(slot, 1);
  ++changes_;
}

/// Memory of the frame that ends more than so many bytes below SP is not ours any more.
void FrameState::drop_slots_below(std::int64_t bytes_below_sp) {
  const Value& sp = registers_[sp_];
  // Every other base lies below the CFA, so once SP is at a known distance from the CFA again it was released.
  const auto end = sp.base == k_cfa_base ? slots_.cend() : first_below(sp.base, INT64_MIN);
  erase_slots(first_below(sp.base, sp.offset - bytes_below_sp), end, [](const Slot&) { return true; });
}

void FrameState::set_sp(const Value& value) {
  put(sp_, value);
  drop_slots_below(red_zone_);
}

void FrameState::push(const Effect& effect) {
  const Value value = effect.reg == k_no_reg || effect.value != k_word ? Value{} : registers_[effect.reg];
  move_sp(-effect.value);
  store(sp(), 0, static_cast<std::uint32_t>(effect.value), value);
}

bool FrameState::pop(const Effect& effect, std::string& why) {
  const Value value = effect.value == k_word ? memory(sp(), 0, k_word) : Value{};
  move_sp(effect.value);
  if (effect.reg == sp_) {
    if (!value.is_address()) return why = "loads SP from memory that holds no known address", false;
    put(sp_, value);
  } else if (effect.reg != k_no_reg) {
    put(effect.reg, value);
  }
  drop_slots_below(red_zone_);
  return true;
}

bool FrameState::copy(const Effect& effect, std::string& why) {
  Value value = registers_[effect.base];
  if (value.is_address())
    value.offset += effect.value;
  else if (effect.value != 0)
    value = {};
  if (effect.reg != sp_) return put(effect.reg, value), true;
  if (!value.is_address()) return why = "sets SP from a register that holds no known stack address", false;
  set_sp(value);
  return true;
}

void FrameState::lower(BaseId id) {
  drop_slots_below(0);
  // The same instruction once more, in a loop: what was known relative to its previous result is history.
  erase_slots(slots_.begin(), slots_.end(),
              [&](const Slot& s) { return s.base == id || (s.value.is_address() && s.value.base == id); });
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (r != sp_ && registers_[r].is_address() && registers_[r].base == id) put(r, {});
  put(sp_, Value::address(id, 0));
}

void FrameState::forget_what_callees_use() {
  for (RegSet left = known_ & ~preserved_ & ~set_of(sp_); left != 0; left &= left - 1) put(first_of(left), {});
  drop_slots_below(0);
}

bool FrameState::apply(const Effect& effect, BaseId id, std::string& why) {
  using Kind = Effect::Kind;
  switch (effect.kind) {
    case Kind::clobber:
      for (RegNum r = 0; r < k_tracked_registers; ++r)
        if (has(effect.set, r)) put(r, {});
      return true;
    case Kind::push:
      return push(effect), true;
    case Kind::pop:
      return pop(effect, why);
    case Kind::copy:
      return copy(effect, why);
    case Kind::lower_unknown:
      return lower(id), true;
    case Kind::store:
      store(registers_[effect.base], effect.value, effect.size,
            effect.reg != k_no_reg && effect.size == size_of(effect.reg) ? registers_[effect.reg] : Value{});
      return true;
    case Kind::load: {
      const Value value =
          effect.size == size_of(effect.reg) ? memory(registers_[effect.base], effect.value, effect.size) : Value{};
      if (effect.reg != sp_) return put(effect.reg, value), true;
      if (!value.is_address()) return why = "loads SP from memory that holds no known address", false;
      set_sp(value);
      return true;
    }
    case Kind::address_of:
      put(effect.reg, Value::code(effect.label));
      return true;
    case Kind::call:
      forget_what_callees_use();
      if (effect.value != 0) {
        move_sp(effect.value);
        drop_slots_below(red_zone_);
      }
      return true;
    case Kind::sp_unknown:
      return why = "changes SP in a way that cannot be followed", false;
    case Kind::cannot_return:
      return why = "leaves the procedure in a way that has no caller", false;
    case Kind::ret:
    case Kind::jump:
    case Kind::branch:
    case Kind::jump_elsewhere:
    case Kind::branch_elsewhere:
    case Kind::jump_indirect:
    case Kind::trap:
      return true;
  }
  return true;
}

bool FrameState::merge(const FrameState& other, bool& changed, std::string& why) {
  if (preserved_ != other.preserved_) return why = "is reached from procedures of different calling conventions", false;
  if (sp() != other.sp()) {
    why = "is reached with SP = " + describe_value(sp()) + " and with SP = " + describe_value(other.sp());
    return false;
  }
  for (RegNum r = 0; r < k_tracked_registers; ++r) {
    if (registers_[r] == other.registers_[r] || registers_[r].kind == Value::Kind::unknown) continue;
    put(r, {});
    changed = true;
  }
  auto theirs = other.slots_.begin();
  changed |= erase_slots(slots_.begin(), slots_.end(), [&](const Slot& s) {
    while (theirs != other.slots_.end() && is_before(*theirs, s)) ++theirs;
    return theirs == other.slots_.end() || *theirs != s;
  });
  return true;
}

}  // namespace jitunwind::derivation
