#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"

#include <algorithm>
#include <bit>

#include "jitunwind/unwind_core/sources/guesses/call_target_p.h"

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

/// What one instruction makes of what is known.
class Transfer {
 public:
  Transfer(const Arch& arch, CodeState& state) noexcept : arch_(arch), state_(state) {}

  void apply(const MachineInstruction& i) noexcept {
    switch (i.effect) {
      case Effect::push:
        state_.sp = plus(state_.sp, -i.amount);
        save(i.reg, state_.sp);
        break;
      case Effect::leave:
        state_.sp = state_.fp;
        [[fallthrough]];
      case Effect::pop:
        restore(i.reg, state_.sp);
        // What is popped into SP is what it holds then.
        if (i.reg != arch_.sp) state_.sp = plus(state_.sp, i.amount);
        break;
      case Effect::set:
        set(i.reg, plus(value_of(i.base), i.amount));
        break;
      case Effect::store:
        save(i.reg, plus(value_of(i.base), i.amount));
        break;
      case Effect::load:
        restore(i.reg, plus(value_of(i.base), i.amount));
        break;
      default:
        break;
    }
    for (std::uint64_t written = i.written; written != 0; written &= written - 1)
      overwrite(static_cast<RegNum>(std::countr_zero(written)));
  }

 private:
  StackPlace value_of(RegNum reg) const noexcept {
    return reg == arch_.sp ? state_.sp : reg == arch_.fp ? state_.fp : StackPlace{};
  }
  bool is_kept(RegNum reg) const noexcept {
    const RegisterInfo* const info = reg < CodeState::k_registers ? arch_.by_dwarf(reg) : nullptr;
    return info && info->preserved && reg != arch_.sp;
  }
  static std::uint32_t bit(RegNum reg) noexcept { return std::uint32_t{1} << reg; }
  /// Words below SP at the start; 0: elsewhere.
  std::uint8_t words_below(StackPlace place) const noexcept {
    const std::int32_t words = -place.offset / arch_.word_size;
    return place.base == Base::sp && place.offset % arch_.word_size == 0 && words > 0 && words < 256
               ? static_cast<std::uint8_t>(words)
               : std::uint8_t{0};
  }

  void save(RegNum reg, StackPlace place) noexcept {
    if (!is_kept(reg) || state_.saved[reg] != 0 || (state_.lost & bit(reg)) != 0) return;
    if (reg != arch_.fp || state_.fp.is(Base::fp, 0)) state_.saved[reg] = words_below(place);
  }
  void restore(RegNum reg, StackPlace place) noexcept {
    if (is_kept(reg) && state_.saved[reg] != 0 && state_.saved[reg] == words_below(place)) {
      state_.saved[reg] = 0;
      if (reg == arch_.fp) state_.fp = {Base::fp, 0};
    } else if (reg != k_no_reg) {
      overwrite(reg);
    }
  }
  void set(RegNum reg, StackPlace value) noexcept {
    if (reg == arch_.sp) {
      state_.sp = value;
      return;
    }
    if (state_.fp.is(Base::fp, 0) && !value.is(Base::fp, 0)) lose(reg);
    state_.fp = value;
  }
  void overwrite(RegNum reg) noexcept {
    if (reg == arch_.sp) state_.sp = {};
    if (reg == arch_.fp) state_.fp = {};
    lose(reg);
  }
  void lose(RegNum reg) noexcept {
    if (is_kept(reg) && state_.saved[reg] == 0) state_.lost |= bit(reg);
  }

  const Arch& arch_;
  CodeState& state_;
};

}  // namespace

bool CodeFlow::reach(Addr goal, CodeState& out) noexcept {
  towards_ = goal;
  return follow([&](const MachineInstruction*) { return at_ == goal; }, k_most_to_goal, out);
}

/// False: control does not go on, as far as that can be told.
bool CodeFlow::pass(const MachineInstruction& i, CodeState& state) noexcept {
  Transfer(space_.arch, state).apply(i);
  at_ += i.length;
  if (i.effect == Effect::branch) add_branch(i.target, state);
  if (i.effect == Effect::call && !space_.arch.ra_in_memory) return false;  // the link register is another one's then
  if (i.effect != Effect::jump) return i.goes_on();
  const auto target = target_of(i);
  return target && go_to(*target);
}

/// The nearest one before the goal, if there is one; without goal, the last one that was met. False: there is none.
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

MachineInstruction CodeFlow::read(Addr at) noexcept {
  constexpr std::size_t k_longest = 16;
  const Addr from = at - bytes_at_;
  if (from >= bytes_size_ || (bytes_size_ - from < k_longest && bytes_size_ == bytes_.size())) {
    bytes_at_ = at;
    bytes_size_ = space_.memory.read(at, bytes_, window_);
  }
  const std::span<const std::byte> bytes(bytes_.data(), bytes_size_);
  return space_.arch.read_instruction(
      bytes.subspan(static_cast<std::size_t>(std::min<Addr>(at - bytes_at_, bytes_size_))), at);
}

/// Stubs jump by a word that the dynamic linker fills in. Nothing: where to is not known.
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

/// The stretch so far is one that was followed. False: there are too many.
bool CodeFlow::go_to(Addr at) noexcept {
  if (begin_ != at_) {
    if (stretches_count_ == stretches_.size()) return false;
    stretches_[stretches_count_++] = {begin_, at_};
  }
  begin_ = at_ = at;
  return true;
}

}  // namespace jitunwind
