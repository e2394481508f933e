// Follows code, instruction by instruction, for its effects on the stack: from a procedure's entry to a pc, and from a
// pc to the procedure's return. A frame is one on which both agree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/row_source.h"

namespace jitunwind {

/// The target of an operand with these registers; `sp` replaces their SP. Empty: a register is not known, or the memory
/// cannot be read.
std::optional<Addr> target_by(const JumpOperand& operand, const RegisterFile& registers, Addr sp,
                              const AddressSpace& space, MemoryWindow& window) noexcept;

/// A return address tells the end of the call before it, but not its start: every possible call that ends there is
/// read.
class CallTargets {
 public:
  /// Registers and SP are those at the time of the call, as far as they are known. Calls by registers that have other
  /// values by now have other targets here, too: the caller must check that they lead to the code in question.
  CallTargets(const Lookup& lookup, const RegisterFile& registers, Addr return_address, Addr sp_at_call) noexcept;

  std::span<const Addr> all() const noexcept { return {targets_.data(), count_}; }
  /// The call is by a register or by memory, which may have had any value, and its bytes cannot be read as a call of
  /// certain code.
  bool may_be_others() const noexcept { return is_indirect_ && !is_direct_; }

 private:
  void add(Addr target) noexcept;

  std::array<Addr, 4> targets_{};
  std::size_t count_ = 0;
  bool is_indirect_ = false;
  bool is_direct_ = false;
};

/// An address on the stack, relative to the start of the path.
struct StackPlace {
  enum class Base : std::uint8_t {
    unknown,
    sp,  ///< value of SP at the start
    fp,  ///< value of the frame pointer at the start
  };
  Base base = Base::unknown;
  std::int32_t offset = 0;

  bool is(Base b, std::int32_t o) const noexcept { return base == b && offset == o; }
};

/// The known state at one instruction.
struct CodeState {
  StackPlace sp{StackPlace::Base::sp, 0};
  StackPlace fp{StackPlace::Base::fp, 0};
  StackPlace link{};  ///< source of the link register, if that is loaded from elsewhere than its slot; else unknown
  /// Registers that have other values than at the start: a bit for each place (place_of).
  std::uint32_t changed = 0;
  /// Registers that were stored at two places before they changed. One is the slot in which the procedure saves the
  /// register. The other belongs to a variable that has no value yet, and gets one. The two cannot be told apart.
  std::uint32_t stored_twice = 0;
  std::uint32_t loaded = 0;  ///< of these, those that were last loaded from the stack, as procedures do at their end
  std::uint32_t taken = 0;   ///< of these, registers that were not saved before: `saved` has the source
  SigningKey key = SigningKey::any;            ///< of the link register's signature since the start; any: not signed
  SigningKey authenticated = SigningKey::any;  ///< key that it was signed with before the start; any: unknown
  /// The slot that has a place's value at the start, in words below SP at the start. Slots that are not below have one
  /// less: -1 is at SP. 0: the register has the value.
  std::array<std::int16_t, k_register_places> saved{};

  /// The slot as in `saved`; 0: the register has the value, or it is lost.
  std::int16_t place_saved(RegNum reg) const noexcept {
    return (taken >> place_of(reg) & 1) != 0 ? std::int16_t{0} : saved[place_of(reg)];
  }
  bool has_lost(RegNum reg) const noexcept { return place_saved(reg) == 0 && (changed >> place_of(reg) & 1) != 0; }
  /// Number of words from SP at the start down to a slot of `saved`, which is not 0.
  static constexpr std::int64_t words_below(std::int16_t place) noexcept { return place < 0 ? place + 1 : place; }
};

/// Follows code from one address. Every step is bounded. A path ends at data, at memory that cannot be read, and at
/// instructions that are not understood: branches that were not taken before are tried then. Signal-safe if the memory
/// is.
class CodeFlow {
 public:
  /// `live`: registers for a goal that may have just been jumped to by one of them.
  CodeFlow(const AddressSpace& space, MemoryWindow& window, Addr start, const RegisterFile* live = nullptr) noexcept;
  CodeFlow(const CodeFlow&) = delete;
  CodeFlow& operator=(const CodeFlow&) = delete;

  /// A call before the start has returned: the link register has the value that the call left in it.
  void start_behind_call() noexcept { state_.changed |= link_bit(); }
  /// Follows to the code in question and gives the state there: at an address, or after the call that returns to it.
  /// False: no path that was found leads there. Used once for each object, like the functions below.
  bool reach(CodeAddress goal, CodeState& out) noexcept;
  /// Follows likewise, but over no call.
  bool reach_without_call(Addr goal) noexcept;
  /// Follows to a return of the code, or to a jump out of it, if `accepts` takes the state there as a procedure's end.
  /// Its second argument tells whether the code returns. SP is in a known place.
  template <class Accepts>
  bool reach_return(Accepts accepts, CodeState& out) noexcept {
    const auto returns = [&](const MachineInstruction* i) {
      if (!i || !i->leaves() || out.sp.base == StackPlace::Base::unknown) return false;
      const bool is_return = i->effect == MachineInstruction::Effect::ret;
      if (is_return && i->key() != SigningKey::any && out.key == SigningKey::any) out.authenticated = i->key();
      return accepts(std::as_const(out), is_return);
    };
    return follow(returns, k_most_to_return, out);
  }
  /// Follows likewise, but over no call.
  template <class Accepts>
  bool reach_return_without_call(Accepts accepts, CodeState& out) noexcept {
    passes_calls_ = false;
    return reach_return(accepts, out);
  }
  /// A path led to bytes that are no code now, or near them.
  bool met_data() const noexcept { return met_data_; }

 private:
  /// Limits in instructions. Large functions have tens of thousands.
  static constexpr std::size_t k_most_to_goal = 4096;
  static constexpr std::size_t k_most_to_return = 1024;

  struct Branch {
    Addr target = 0;
    CodeState state{};
  };

  template <class IsGoal>
  bool follow(IsGoal is_goal, std::size_t most, CodeState& out) noexcept;
  std::uint32_t link_bit() const noexcept { return link_ == k_no_reg ? 0 : std::uint32_t{1} << place_of(link_); }
  bool pass(const MachineInstruction& i, CodeState& state) noexcept;
  bool take_branch() noexcept;
  MachineInstruction read(Addr at) noexcept;
  std::size_t code_size(Addr at) noexcept;
  std::optional<Addr> target_of(const MachineInstruction& jump) noexcept;
  bool was_at(Addr at) const noexcept;
  bool is_waiting(Addr at) const noexcept;
  void add_branch(Addr target, const CodeState& state) noexcept;
  bool go_to(Addr at) noexcept;

  const AddressSpace& space_;
  MemoryWindow& window_;
  const RegisterFile* live_;
  RegNum link_;                 // the link register; k_no_reg: calls push
  std::uint32_t followed_ = 0;  // registers, a bit for each place
  bool passes_calls_ = true;
  Addr begin_;  // start of the stretch that is followed
  Addr at_;
  Addr towards_ = 0;
  CodeState state_{};  // state at the start of the stretch
  std::size_t branches_count_ = 0;
  std::size_t stretches_count_ = 0;
  AddrRange code_{};  // known to be code
  Addr bytes_at_ = 0;
  std::size_t bytes_size_ = 0;
  bool met_data_ = false;
  std::array<Branch, 24> branches_;
  std::array<AddrRange, 48> stretches_;  // stretches that were followed to their end
  std::array<std::byte, 128> bytes_;
};

/// Follows stretches of code, one after the other, each as far as control continues without a branch. If a stretch
/// reaches the target of a branch, the state of the branch counts: a call before the target may be one that does not
/// return.
template <class IsGoal>
bool CodeFlow::follow(IsGoal is_goal, std::size_t most, CodeState& out) noexcept {
  do {
    out = state_;
    while (!was_at(at_) && (at_ == begin_ || !is_waiting(at_))) {
      if (is_goal(nullptr)) return true;
      if (most-- == 0) return false;
      const MachineInstruction i = read(at_);
      if (is_goal(&i)) return true;
      if (!pass(i, out)) break;
    }
  } while (take_branch());
  return false;
}

}  // namespace jitunwind
