#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"

#include <algorithm>
#include <bit>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"

namespace jitunwind {
namespace {

using Effect = MachineInstruction::Effect;
using Base = StackPlace::Base;

StackPlace plus(StackPlace place, std::int64_t amount) noexcept {
  constexpr std::int64_t k_farthest = std::int64_t{1} << 28;
  const std::int64_t offset = place.offset + amount;
  if (place.base == Base::unknown || offset > k_farthest || offset < -k_farthest) return {};
  return {place.base, static_cast<std::int32_t>(offset)};
}

/// Applies the effect of one instruction to the known state.
class Transfer {
 public:
  /// `followed`: registers, a bit for each register place. `link`: the link register; k_no_reg: calls push.
  Transfer(const Arch& arch, std::uint32_t followed, RegNum link, CodeState& state) noexcept
      : arch_(arch), followed_(followed), link_(link), state_(state) {}

  [[gnu::always_inline]] void apply(const MachineInstruction& i) noexcept {
    switch (i.effect) {
      case Effect::push:
        state_.sp = plus(state_.sp, -i.amount);
        save(i.reg, state_.sp);
        break;
      case Effect::enter:
        state_.sp = plus(state_.sp, -arch_.word_size);
        save(i.reg, state_.sp);
        set(i.reg, state_.sp);
        state_.sp = plus(state_.sp, -i.amount);
        break;
      case Effect::leave:
        state_.sp = state_.fp;
        [[fallthrough]];
      case Effect::pop:
        restore(i.reg, state_.sp);
        // A value that is popped into SP is its value after the pop.
        if (i.reg != arch_.sp) state_.sp = plus(state_.sp, i.amount);
        break;
      case Effect::set:
        set(i.reg, address_in(i));
        break;
      case Effect::exchange:
        overwrite(i.reg);
        overwrite(i.base);
        break;
      case Effect::store:
      case Effect::load:
        access(i);
        break;
      case Effect::call:
        if (link_ != k_no_reg) overwrite(link_);
        break;
      case Effect::sign:
        sign(i.key());
        break;
      case Effect::authenticate:
        if (state_.key == SigningKey::any) state_.authenticated = i.key();
        state_.key = SigningKey::any;
        break;
      default:
        break;
    }
    for (std::uint32_t written = i.written; written != 0; written &= written - 1)
      overwrite(static_cast<RegNum>(std::countr_zero(written)));
  }

 private:
  StackPlace value_of(RegNum reg) const noexcept {
    return reg == arch_.sp ? state_.sp : reg == arch_.fp ? state_.fp : StackPlace{};
  }
  static std::uint32_t bit(RegNum reg) noexcept { return std::uint32_t{1} << place_of(reg); }
  bool is_kept(RegNum reg) const noexcept { return (followed_ & bit(reg)) != 0; }
  /// A slot as in CodeState::saved; 0: the place is elsewhere.
  std::int16_t slot_of(StackPlace place) const noexcept {
    const std::int32_t words = -place.offset / arch_.word_size;
    if (place.base != Base::sp || place.offset % arch_.word_size != 0 || words > 0x7fff || words < -0x7fff) return 0;
    return static_cast<std::int16_t>(words > 0 ? words : words - 1);
  }

  /// The place base + amount; none if an index counts, too.
  StackPlace address_in(const MachineInstruction& i) const noexcept {
    return i.index == k_no_reg ? plus(value_of(i.base), i.amount) : StackPlace{};
  }

  void access(const MachineInstruction& i) noexcept {
    const StackPlace place = address_in(i);
    const auto one = [&](RegNum reg, StackPlace at) {
      if (reg != k_no_reg) i.effect == Effect::store ? save(reg, at) : restore(reg, at);
    };
    one(i.reg, place);
    one(i.second, plus(place, arch_.word_size));
    if (i.step != 0) set(i.base, plus(value_of(i.base), i.step));
  }
  void save(RegNum reg, StackPlace place) noexcept {
    const std::int16_t slot = slot_of(place);
    if (!is_kept(reg) || slot == 0 || ((state_.changed | state_.stored_twice) & bit(reg)) != 0) return;
    if (reg == arch_.fp && !state_.fp.is(Base::fp, 0)) return;
    std::int16_t& saved = state_.saved[place_of(reg)];
    if (saved != 0 && saved != slot) state_.stored_twice |= bit(reg);
    saved = (state_.stored_twice & bit(reg)) != 0 ? std::int16_t{0} : slot;
  }
  void restore(RegNum reg, StackPlace place) noexcept {
    const std::int16_t slot = slot_of(place);
    std::int16_t& saved = state_.saved[place_of(reg)];
    if (is_kept(reg) && slot != 0 && slot == state_.place_saved(reg)) {
      saved = 0;
      state_.changed &= ~bit(reg);
      state_.loaded &= ~bit(reg);
      if (reg == arch_.fp) state_.fp = {Base::fp, 0};
    } else if (reg != k_no_reg) {
      overwrite(reg);
      if (place.base != Base::unknown) state_.loaded |= bit(reg) & followed_ & ~state_.stored_twice;
      if (saved == 0 && slot != 0 && (state_.loaded & bit(reg)) != 0) {
        state_.taken |= bit(reg);
        saved = slot;
      }
      if (reg == link_) state_.link = place;
    }
  }
  void set(RegNum reg, StackPlace value) noexcept {
    if (reg == arch_.sp) {
      state_.sp = value;
      return;
    }
    if (reg != arch_.fp) return overwrite(reg);
    if (state_.fp.is(Base::fp, 0) && !value.is(Base::fp, 0)) lose(reg);
    state_.fp = value;
  }
  /// Overwrites a register by its number, or by its place.
  void overwrite(RegNum reg) noexcept {
    if (reg == arch_.sp) state_.sp = {};
    if (reg == arch_.fp) state_.fp = {};
    if (reg == link_) state_.link = {};
    lose(reg);
  }
  void lose(RegNum reg) noexcept {
    if (!is_kept(reg)) return;
    if ((state_.taken & bit(reg)) != 0) state_.saved[place_of(reg)] = 0;
    state_.changed |= bit(reg);
    state_.loaded &= ~bit(reg);
    state_.taken &= ~bit(reg);
  }
  /// The signature is over SP at the entry; any other one cannot be expressed by a row.
  void sign(SigningKey key) noexcept {
    const bool is_first = state_.key == SigningKey::any && state_.place_saved(link_) == 0;
    if (!is_first || !state_.sp.is(Base::sp, 0)) overwrite(link_);
    state_.key = key;
  }

  const Arch& arch_;
  const std::uint32_t followed_;
  const RegNum link_;
  CodeState& state_;
};

}  // namespace

CodeFlow::CodeFlow(const AddressSpace& space, MemoryWindow& window, Addr start, const RegisterFile* live) noexcept
    : space_(space),
      window_(window),
      live_(live),
      link_(space.arch.ra_in_memory ? k_no_reg : space.arch.ra),
      begin_(start),
      at_(start) {
  if (!space.memory.tells_executable()) code_ = {0, ~Addr{0}};
  for (const RegisterInfo& reg : space.arch.registers)
    if (is_followed(space.arch, reg)) followed_ |= std::uint32_t{1} << place_of(reg.dwarf);
}

bool CodeFlow::reach(CodeAddress goal, CodeState& out) noexcept {
  towards_ = goal.value();
  if (!goal.is_return_address())
    return follow([&](const MachineInstruction*) { return at_ == towards_; }, k_most_to_goal, out);
  // Branch targets may be other code, after a call that does not return.
  const auto is_behind_call = [&](const MachineInstruction* i) {
    if (!i || i->effect != Effect::call || at_ + i->length != towards_) return false;
    out.changed |= link_bit();
    return true;
  };
  return follow(is_behind_call, k_most_to_goal, out);
}

bool CodeFlow::reach_without_call(Addr goal) noexcept {
  passes_calls_ = false;
  CodeState ignored;
  return reach(CodeAddress::interrupted(goal), ignored);
}

/// False: control does not continue, as far as can be told.
bool CodeFlow::pass(const MachineInstruction& i, CodeState& state) noexcept {
  Transfer(space_.arch, followed_, link_, state).apply(i);
  at_ += i.length;
  if (i.effect == Effect::branch) add_branch(i.target, state);
  if (i.effect == Effect::call && !passes_calls_) return false;
  if (i.effect != Effect::jump) return i.goes_on();
  const auto target = target_of(i);
  return target && go_to(*target);
}

/// Takes the nearest branch before the goal, if there is one; without a goal, the last one that was met. False: there
/// is none.
bool CodeFlow::take_branch() noexcept {
  if (branches_count_ == 0) return false;
  std::size_t best = branches_count_ - 1;
  const auto is_better = [this](Addr a, Addr b) {
    if ((a <= towards_) != (b <= towards_)) return a <= towards_;
    return a <= towards_ ? a > b : a < b;
  };
  for (std::size_t i = 0; towards_ != 0 && i < branches_count_; ++i)
    if (is_better(branches_[i].target, branches_[best].target)) best = i;
  if (!go_to(branches_[best].target)) return false;
  state_ = branches_[best].state;
  branches_[best] = branches_[--branches_count_];
  return true;
}

/// The number of the next bytes to read that are code.
std::size_t CodeFlow::code_size(Addr at) noexcept {
  if (!code_.contains(at)) code_ = code_around(space_, window_, at);
  while (code_.contains(at) && code_.end - at < bytes_.size()) {
    const AddrRange next = code_around(space_, window_, code_.end);
    if (!next.contains(code_.end)) break;
    code_.end = next.end;
  }
  const Addr left = code_.contains(at) ? code_.end - at : 0;
  met_data_ |= left < bytes_.size();
  return static_cast<std::size_t>(std::min<Addr>(left, bytes_.size()));
}

MachineInstruction CodeFlow::read(Addr at) noexcept {
  constexpr std::size_t k_longest = 16;
  const Addr from = at - bytes_at_;
  if (from >= bytes_size_ || (bytes_size_ - from < k_longest && bytes_size_ == bytes_.size())) {
    bytes_at_ = at;
    bytes_size_ = space_.memory.read(at, std::span(bytes_).first(code_size(at)), window_);
  }
  const std::span<const std::byte> bytes(bytes_.data(), bytes_size_);
  return space_.arch.read_instruction(
      bytes.subspan(static_cast<std::size_t>(std::min<Addr>(at - bytes_at_, bytes_size_))), at);
}

/// Stubs jump by a word that the dynamic linker fills in. Empty: the target is not known.
std::optional<Addr> CodeFlow::target_of(const MachineInstruction& jump) noexcept {
  if (jump.target != 0) return jump.target;
  const bool by_register = jump.operand.base != k_no_reg || jump.operand.index != k_no_reg;
  if (by_register && !live_) return std::nullopt;
  const RegisterFile none;
  const RegisterFile& registers = by_register ? *live_ : none;
  const Addr sp = registers.get(space_.arch.column(space_.arch.sp)).value_or(0);
  const auto target = target_by(jump.operand, registers, sp, space_, window_);
  return by_register && target != towards_ ? std::nullopt : target;
}

bool CodeFlow::was_at(Addr at) const noexcept {
  const std::span stretches(stretches_.data(), stretches_count_);
  return std::ranges::any_of(stretches, [at](const AddrRange& s) { return s.contains(at); });
}

bool CodeFlow::is_waiting(Addr at) const noexcept {
  const std::span branches(branches_.data(), branches_count_);
  return std::ranges::any_of(branches, [at](const Branch& b) { return b.target == at; });
}

void CodeFlow::add_branch(Addr target, const CodeState& state) noexcept {
  const bool is_known = AddrRange{begin_, at_}.contains(target) || was_at(target) || is_waiting(target);
  if (!is_known && branches_count_ != branches_.size()) branches_[branches_count_++] = {target, state};
}

/// Adds the stretch so far to those that were followed. False: there are too many.
bool CodeFlow::go_to(Addr at) noexcept {
  if (begin_ != at_) {
    if (stretches_count_ == stretches_.size()) return false;
    stretches_[stretches_count_++] = {begin_, at_};
  }
  begin_ = at_ = at;
  return true;
}

std::optional<Addr> target_by(const JumpOperand& operand, const RegisterFile& registers, Addr sp,
                              const AddressSpace& space, MemoryWindow& window) noexcept {
  const Arch& arch = space.arch;
  const auto value_of = [&](RegNum reg) -> std::optional<Addr> {
    if (reg == k_no_reg) return 0;
    return reg == arch.sp ? sp : registers.get(arch.column(reg));
  };
  if (operand.kind == JumpOperand::Kind::none) return std::nullopt;
  const auto base = value_of(operand.base), index = value_of(operand.index);
  if (!base || !index) return std::nullopt;
  const Addr value = (*base + *index * operand.scale + static_cast<Addr>(operand.offset)) & arch.word_mask();
  if (operand.kind == JumpOperand::Kind::value) return value & arch.address_mask;
  const auto word = read_word(space.memory, window, value, arch, "target of a call");
  return word ? std::optional(*word & arch.address_mask) : std::nullopt;
}

CallTargets::CallTargets(const Lookup& lookup, const RegisterFile& registers, Addr return_address,
                         Addr sp_at_call) noexcept {
  const AddressSpace& space = lookup.space;
  if (!space.arch.read_instruction || return_address == 0) return;
  const CodeBefore code(return_address, space.memory, lookup.window);
  for (const CodePattern& pattern : space.arch.calls) {
    if (!code.ends_with(pattern)) continue;
    // A prefix before the pattern makes other registers of the same bytes.
    for (std::size_t length = pattern.bytes.size(); length <= pattern.bytes.size() + 1; ++length) {
      if (length > code.size()) break;
      const MachineInstruction call = space.arch.read_instruction(code.last(length), return_address - length);
      if (call.effect != MachineInstruction::Effect::call || call.length != length) continue;
      const auto target = call.target != 0 ? std::optional(call.target)
                                           : target_by(call.operand, registers, sp_at_call, space, lookup.window);
      if (target) add(*target);
      if (call.target == 0)
        is_indirect_ = true;
      else if (is_code(space, lookup.window, call.target))
        is_direct_ = true;
    }
  }
}

void CallTargets::add(Addr target) noexcept {
  if (count_ != targets_.size() && std::ranges::find(all(), target) == all().end()) targets_[count_++] = target;
}

}  // namespace jitunwind
