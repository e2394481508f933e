// Following code, instruction by instruction, for what it does to the stack: from a procedure's entry to a pc, and from
// a pc to where the procedure returns. What both say of one frame is the frame.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

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
  static constexpr std::size_t k_registers = 32;

  StackPlace sp{StackPlace::Base::sp, 0};
  StackPlace fp{StackPlace::Base::fp, 0};
  /// Preserved registers that have other values than at the start, which are in no known place. A bit for each number.
  std::uint32_t lost = 0;
  /// Words below SP at the start where the value of then is; 0: the register has it.
  std::array<std::uint8_t, k_registers> saved{};
};

/// Follows from one address. Every step is bounded, and what cannot be read or is not understood ends the way there:
/// branches not taken before are tried then. Signal-safe where the memory is.
class CodeFlow {
 public:
  /// `live`: registers of a goal that may have been jumped to an instant ago, by one of them.
  CodeFlow(const AddressSpace& space, MemoryWindow& window, Addr start, const RegisterFile* live = nullptr) noexcept
      : space_(space), window_(window), live_(live), begin_(start), at_(start) {}
  CodeFlow(const CodeFlow&) = delete;
  CodeFlow& operator=(const CodeFlow&) = delete;

  /// To an address; what is known there. False: no way that was found leads there. Once for each object, as below.
  bool reach(Addr goal, CodeState& out) noexcept;
  /// To where the code returns, or jumps to what is not in the code, with SP at a return address, and so at a place
  /// that `accepts` takes for one.
  template <class Accepts>
  bool reach_return(Accepts accepts, CodeState& out) noexcept {
    const auto returns = [&](const MachineInstruction* i) {
      if (!i || !i->leaves() || out.sp.base == StackPlace::Base::unknown || !accepts(out.sp)) return false;
      returned_ = i->effect == MachineInstruction::Effect::ret;
      return true;
    };
    return follow(returns, k_most_to_return, out);
  }
  /// To where the code returns by the link register, with both that and SP as they were at the start.
  bool reach_link_return() noexcept {
    CodeState state;
    const auto returns = [&](const MachineInstruction* i) {
      return i && i->effect == MachineInstruction::Effect::ret && state.sp.is(StackPlace::Base::sp, 0);
    };
    return follow(returns, k_most_to_return, state);
  }
  /// Precondition: reach_return() found one. False: it is a jump.
  bool returned() const noexcept { return returned_; }

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
  bool pass(const MachineInstruction& i, CodeState& state) noexcept;
  bool take_branch() noexcept;
  MachineInstruction read(Addr at) noexcept;
  std::optional<Addr> target_of(const MachineInstruction& jump) noexcept;
  bool was_at(Addr at) const noexcept;
  bool is_waiting(Addr at) const noexcept;
  void add_branch(Addr target, const CodeState& state) noexcept;
  bool go_to(Addr at) noexcept;

  const AddressSpace& space_;
  MemoryWindow& window_;
  const RegisterFile* live_;
  Addr begin_;  // of the stretch that is followed
  Addr at_;
  Addr towards_ = 0;
  CodeState state_{};  // where the stretch begins
  std::size_t branches_count_ = 0;
  std::size_t stretches_count_ = 0;
  Addr bytes_at_ = 0;
  std::size_t bytes_size_ = 0;
  bool returned_ = false;
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
