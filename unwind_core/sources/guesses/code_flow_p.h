// Following code, instruction by instruction, for what it does to the stack: from a procedure's entry to a pc, and from
// a pc to where the procedure returns. What both say of one frame is the frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/arch/instruction_p.h"

namespace jitunwind {

/// An address on the stack, from where the following began.
struct StackPlace {
  enum class Base : std::uint8_t {
    unknown,
    sp,  ///< what SP held at the start
    fp,  ///< what the frame pointer held at the start
  };
  Base base = Base::unknown;
  std::int32_t offset = 0;

  bool is(Base b, std::int32_t o) const noexcept { return base == b && offset == o; }
};

/// What is known at one instruction.
struct CodeState {
  StackPlace sp{StackPlace::Base::sp, 0};
  StackPlace fp{StackPlace::Base::fp, 0};
  StackPlace link{};  ///< where the link register was loaded from, other than from where it was saved; else unknown
  /// Registers that have other values than at the start. A bit for each place (place_of).
  std::uint32_t changed = 0;
  /// Those that were stored at two places before they changed: one is where the procedure saves the register, and the
  /// other of a variable that has no value yet, and gets one. Which is which is not known.
  std::uint32_t stored_twice = 0;
  std::uint32_t loaded = 0;  ///< of these, those that were loaded from the stack last, as procedures do at their end
  std::uint32_t taken = 0;   ///< of these, those that were not saved before: `saved` tells where from
  SigningKey key = SigningKey::any;  ///< that the link register was signed with since the start; any: it was not
  SigningKey authenticated = SigningKey::any;  ///< that it was signed with before the start; any: nothing tells
  /// Where the value of then is, of each place: so many words below SP at the start; not below, one less: -1 is at SP.
  /// 0: the register has it.
  std::array<std::int16_t, k_register_places> saved{};

  /// As `saved`; 0: the register has the value, or nothing has.
  std::int16_t place_saved(RegNum reg) const noexcept {
    return (taken >> place_of(reg) & 1) != 0 ? std::int16_t{0} : saved[place_of(reg)];
  }
  bool has_lost(RegNum reg) const noexcept { return place_saved(reg) == 0 && (changed >> place_of(reg) & 1) != 0; }
  /// Words from SP at the start down to a place as in `saved`, which is not 0.
  static constexpr std::int64_t words_below(std::int16_t place) noexcept { return place < 0 ? place + 1 : place; }
};

/// Whether values of the register are followed: calls preserve it, or it is the link register.
constexpr bool is_followed(const Arch& arch, const RegisterInfo& reg) noexcept {
  return reg.dwarf == arch.ra ? !arch.ra_in_memory
                              : reg.preserved && reg.dwarf != arch.sp && reg.reg_class != RegClass::pseudo;
}

/// Follows from one address. Every step is bounded, and what is no code, cannot be read or is not understood ends the
/// way there: branches not taken before are tried then. Signal-safe where the memory is.
class CodeFlow {
 public:
  /// `live`: registers of a goal that may have been jumped to an instant ago, by one of them.
  CodeFlow(const AddressSpace& space, MemoryWindow& window, Addr start, const RegisterFile* live = nullptr) noexcept;
  CodeFlow(const CodeFlow&) = delete;
  CodeFlow& operator=(const CodeFlow&) = delete;

  /// A call in front of the start has come back: the link register holds what that has left in it.
  void start_behind_call() noexcept { state_.changed |= link_bit(); }
  /// To the code in question, what is known there: to an address, or behind the call that returns to it. False: no way
  /// that was found leads there. Once for each object, as below.
  bool reach(CodeAddress goal, CodeState& out) noexcept;
  /// The same without a call on the way.
  bool reach_without_call(Addr goal) noexcept;
  /// To where the code returns, or jumps to what is not in the code, if `accepts` takes what is known there for a
  /// procedure's end; it is told whether the code returns. SP is in a known place.
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
  /// The same without a call on the way.
  template <class Accepts>
  bool reach_return_without_call(Accepts accepts, CodeState& out) noexcept {
    passes_calls_ = false;
    return reach_return(accepts, out);
  }
  /// A way led to what is no code as it is now, or near it.
  bool met_data() const noexcept { return met_data_; }

 private:
  /// Instructions. Large functions have tens of thousands.
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
  Addr begin_;  // of the stretch that is followed
  Addr at_;
  Addr towards_ = 0;
  CodeState state_{};  // where the stretch begins
  std::size_t branches_count_ = 0;
  std::size_t stretches_count_ = 0;
  AddrRange code_{};  // known to be code
  Addr bytes_at_ = 0;
  std::size_t bytes_size_ = 0;
  bool met_data_ = false;
  std::array<Branch, 24> branches_;
  std::array<AddrRange, 48> stretches_;  // that were followed to their end
  std::array<std::byte, 128> bytes_;
};

/// Stretches of code, one after the other, each as far as control goes on by itself. Where one runs into an address
/// that a branch leads to, the branch says what is known there: a call in front of it may be one that does not return.
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
