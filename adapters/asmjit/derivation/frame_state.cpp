#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"

#include <algorithm>

namespace jitunwind::derivation {
namespace {

constexpr std::uint32_t k_word = 8;

std::uint32_t size_of(RegNum reg) { return reg >= 17 ? 16 : k_word; }

}  // namespace

std::string value_text(const Value& value) {
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
  state.cfa_registers_ = set_of(arch.sp);
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

/// The first slot of the base that begins below `offset`, or the end of its slots. Most lookups are relative to SP,
/// whose slots are the last ones.
FrameState::Slots::const_iterator FrameState::first_below(BaseId base, std::int64_t offset) const noexcept {
  Slot wanted;
  wanted.base = base;
  wanted.offset = offset;
  if (slots_.empty() || !is_before(wanted, slots_.back())) return slots_.end();
  if (slots_.size() == 1 || !is_before(wanted, slots_[slots_.size() - 2])) return slots_.end() - 1;
  return std::upper_bound(slots_.begin(), slots_.end(), wanted,
                          [](const Slot& a, const Slot& b) { return is_before(a, b); });
}

bool FrameState::same_as(const FrameState& other) const noexcept {
  return preserved_ == other.preserved_ && registers_ == other.registers_ && slots_ == other.slots_ &&
         lowerings_ == other.lowerings_;
}

void FrameState::put(RegNum reg, const Value& value) noexcept {
  if (registers_[reg] == value) return;
  registers_[reg] = value;
  known_ = value.kind == Value::Kind::unknown ? known_ & ~set_of(reg) : known_ | set_of(reg);
  cfa_registers_ = value.is_cfa_address() ? cfa_registers_ | set_of(reg) : cfa_registers_ & ~set_of(reg);
  ++changes_;
}

template <class Predicate>
bool FrameState::erase_slots(Slots::const_iterator begin, Slots::const_iterator end, Predicate predicate) {
  if (begin == end) return false;
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
  // Stores through other pointers are not tracked; code that overwrites its own saved registers in this way cannot be
  // described.
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

void FrameState::store(const Effect& effect) {
  const Value& address = registers_[effect.base];
  Value value = effect.reg == k_no_reg ? Value{} : registers_[effect.reg];
  const bool is_vector = value.kind == Value::Kind::entry && size_of(value.reg) != k_word;
  const std::uint32_t size = is_vector ? size_of(value.reg) : k_word;
  if (effect.size < size || (effect.size > size && is_vector)) value = {};
  store(address, effect.value, effect.size, {});
  // The low half of a vector register may hold a general register's value.
  if (value.kind != Value::Kind::unknown) store(address, effect.value, size, value);
}

/// Drops memory of the frame that ends more than so many bytes below SP: it no longer belongs to the frame.
void FrameState::drop_slots_below(std::int64_t bytes_below_sp) {
  const Value& sp = registers_[sp_];
  // Every other base lies below the CFA; its memory is released once SP is at a known distance from the CFA again.
  const auto end = sp.base == k_cfa_base ? slots_.cend() : first_below(sp.base, INT64_MIN);
  erase_slots(first_below(sp.base, sp.offset - bytes_below_sp), end, [](const Slot&) { return true; });
}

void FrameState::set_sp(const Value& value) {
  put(sp_, value);
  if (value.is_cfa_address()) lowerings_.clear();
  drop_slots_below(red_zone_);
}

void FrameState::push(std::int64_t bytes, const Value& value) {
  move_sp(-bytes);
  store(sp(), 0, static_cast<std::uint32_t>(bytes), value);
}

/// The value of a register's low 8 bytes.
Value FrameState::low_half(RegNum reg) const noexcept {
  const Value& value = registers_[reg];
  const bool is_half = value.kind == Value::Kind::entry && size_of(value.reg) != k_word;
  return is_half ? Value{} : value;
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
  Value value = low_half(effect.base);
  if (value.is_address())
    value.offset += effect.value;
  else if (effect.value != 0)
    value = {};
  if (effect.reg != sp_) return put(effect.reg, value), true;
  if (!value.is_address()) return why = "sets SP from a register that holds no known stack address", false;
  set_sp(value);
  return true;
}

bool FrameState::exchange(const Effect& effect, std::string& why) {
  const Value one = registers_[effect.reg], other = registers_[effect.base];
  const bool moves_sp = effect.reg == sp_ || effect.base == sp_;
  if (moves_sp && !(effect.reg == sp_ ? other : one).is_address())
    return why = "changes SP in a way that cannot be followed", false;
  put(effect.reg, other);
  put(effect.base, one);
  if (moves_sp) set_sp(sp());
  return true;
}

/// Makes SP a new base of this instruction. The base exists already if the instruction is in a loop; values relative to
/// its previous result are dropped.
void FrameState::make_sp(BaseId id) {
  erase_slots(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.base == id || s.value.depends_on(id); });
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (r != sp_ && registers_[r].depends_on(id)) put(r, {});
  std::erase_if(lowerings_, [&](const Lowering& l) { return l.to == id || l.from.depends_on(id); });
  put(sp_, Value::address(id, 0));
}

/// Slots after SP is rounded down by 0, 8, ... bytes: values that memory holds for each of these distances. SP is
/// assumed to be a multiple of 8, as the psABI requires.
std::vector<Slot> FrameState::slots_at_any_alignment(std::int64_t alignment, BaseId id) const {
  constexpr std::int64_t k_most = 64;
  std::vector<Slot> out;
  if (!sp().is_cfa_address() || sp().offset % k_word != 0 || alignment > k_most) return out;
  for (auto s = first_below(sp().base, sp().offset); s != slots_.begin() && out.size() < k_most / k_word;) {
    --s;
    if (s->base != sp().base || s->offset - sp().offset > 2 * k_most) break;
    bool everywhere = s->size == k_word;
    for (std::int64_t lowered = 0; everywhere && lowered < alignment; lowered += k_word)
      everywhere = memory(sp(), s->offset - sp().offset - lowered, k_word) == s->value;
    if (everywhere) out.push_back({id, s->offset - sp().offset, k_word, s->value});
  }
  return out;
}

void FrameState::lower(const Effect& effect, BaseId id) {
  constexpr std::size_t k_lowerings = 8;
  drop_slots_below(0);
  const Value from = sp();
  const std::vector<Slot> slots = effect.value != 0 ? slots_at_any_alignment(effect.value, id) : std::vector<Slot>();
  make_sp(id);
  for (const Slot& slot : slots) store(sp(), slot.offset, slot.size, slot.value);
  // Code may add the same amount again, so that the register's value gets a name. A register that the caller relies on
  // keeps its own name.
  if (effect.reg == k_no_reg || effect.reg == sp_ || from.depends_on(id)) return;
  const Value& by = registers_[effect.reg];
  if (by.is_address() || (by.kind == Value::Kind::entry && has(preserved_, by.reg))) return;
  put(effect.reg, Value::amount(id));
  if (lowerings_.size() == k_lowerings) lowerings_.erase(lowerings_.begin());
  lowerings_.push_back({id, from});
}

/// Code that raises SP by an unknown amount is assumed to need nothing that is below SP.
void FrameState::raise(const Effect& effect, BaseId id) {
  const Value by = effect.reg == k_no_reg ? Value{} : registers_[effect.reg];
  if (by.kind == Value::Kind::amount && sp() == Value::address(by.base, 0))
    for (const Lowering& lowering : lowerings_)
      if (lowering.to == by.base) return set_sp(Value(lowering.from));
  drop_slots_below(0);
  make_sp(id | k_loose_base);
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
      return push(effect.value, effect.reg == k_no_reg || effect.value != k_word ? Value{} : registers_[effect.reg]),
             true;
    case Kind::push_memory:
      return push(k_word, memory(registers_[effect.base], effect.value, k_word)), true;
    case Kind::push_code:
      return push(k_word, Value::code(effect.label)), true;
    case Kind::pop:
      return pop(effect, why);
    case Kind::copy:
      return copy(effect, why);
    case Kind::exchange:
      return exchange(effect, why);
    case Kind::lower_unknown:
      return lower(effect, id), true;
    case Kind::raise_unknown:
      return raise(effect, id), true;
    case Kind::store:
      return store(effect), true;
    case Kind::load: {
      const Value value = memory(registers_[effect.base], effect.value, effect.size);
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
      if (effect.value != 0) raise_sp(effect.value);
      return true;
    case Kind::sp_unknown:
      return why = "changes SP in a way that cannot be followed", false;
    case Kind::cannot_return:
      return why = "leaves the procedure in a way that has no caller", false;
    case Kind::compare:
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

bool FrameState::knows_cfa() const noexcept {
  for (RegSet left = cfa_registers_; left != 0; left &= left - 1)
    if (size_of(first_of(left)) == k_word) return true;
  return std::ranges::any_of(slots_, [this](const Slot& s) {
    return s.value.is_cfa_address() && s.base == sp().base && s.offset >= sp().offset;
  });
}

void FrameState::raise_sp(std::int64_t bytes) {
  move_sp(bytes);
  drop_slots_below(red_zone_);
}

/// Drops memory below an SP that is relative to the same base.
void FrameState::drop_slots_of_base_below(const Value& sp) {
  erase_slots(first_below(sp.base, sp.offset), first_below(sp.base, INT64_MIN), [](const Slot&) { return true; });
}

bool FrameState::merge(const FrameState& other, BaseId join, bool& changed, std::string& why) {
  if (preserved_ != other.preserved_) return why = "is reached from procedures of different calling conventions", false;
  const std::uint64_t before = changes_;
  const Value here = sp(), there = other.sp();
  for (RegNum r = 0; r < k_tracked_registers; ++r)
    if (r != sp_ && registers_[r] != other.registers_[r]) put(r, {});
  auto theirs = other.slots_.begin();
  erase_slots(slots_.begin(), slots_.end(), [&](const Slot& s) {
    while (theirs != other.slots_.end() && is_before(*theirs, s)) ++theirs;
    return theirs == other.slots_.end() || *theirs != s;
  });
  std::erase_if(lowerings_, [&](const Lowering& l) {
    return std::ranges::count(other.lowerings_, l) == 0 ? (++changes_, true) : false;
  });
  if (here != there) {
    drop_slots_of_base_below(here);
    drop_slots_of_base_below(there);
    put(sp_, Value::address(join, 0));
    if (!knows_cfa()) {
      why = "is reached with SP = " + value_text(here) + " and with SP = " + value_text(there);
      return false;
    }
  }
  changed |= changes_ != before;
  return true;
}

}  // namespace jitunwind::derivation
