// A position on a stack: the registers of one frame, its code, and the way to its caller. Walks and throws move alike.
// Each has its own members for what else it knows of a frame, and decides when a stack ends or repeats.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/rule_place.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/walk/context.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct CompactCaller;
struct CompactRow;
struct CopiedCaller;
struct KeepTicket;

/// Plain data: copies are independent. All functions are signal-safe where the address space's memory, modules and
/// sources are; none allocates or locks.
class StackPosition {
 public:
  static constexpr std::uint32_t k_max_frames = 1u << 24;

  CodeAddress address() const noexcept { return address_; }
  Addr pc() const noexcept { return address_.value(); }
  Addr sp() const noexcept { return registers_.get(space_->arch.column(space_->arch.sp)).value_or(0); }
  /// Number of steps made since construction.
  std::uint32_t depth() const noexcept { return depth_; }
  const RegisterFile& registers() const noexcept { return registers_; }
  const AddressSpace& space() const noexcept { return *space_; }
  /// False in memory of zeros, where there never was one.
  bool is_made() const noexcept { return space_ != nullptr; }
  /// Memory that was found readable on the way here and is not probed again.
  AddrRange proven() const noexcept { return window_.proven; }
  /// Precondition: all of it was found readable in this walk.
  void set_proven(AddrRange readable) noexcept { window_.proven = readable; }

 protected:
  explicit StackPosition(const AddressSpace& space) noexcept : space_(&space) {}
  StackPosition(const AddressSpace& space, const RegisterFile& registers) noexcept
      : space_(&space), registers_(registers) {}
  /// Takes the registers of a ucontext_t of this machine.
  StackPosition(const AddressSpace& space, const void* ucontext) noexcept
      : space_(&space), registers_(registers_from_ucontext(ucontext, space.arch)) {}

  static constexpr Addr k_no_context = 0;

  /// The pc by its register.
  Addr pc_in_register() const noexcept {
    return registers_.get(space_->arch.column(space_->arch.pc)).value_or(0) & space_->arch.address_mask;
  }

  /// The question that sources are asked about this frame.
  Lookup lookup(Guesses guesses = Guesses::confirmed) noexcept {
    return {*space_, address_, window_, &registers_, guesses};
  }
  /// Writes to where the register of this frame is kept, and here. `context` is the address in the target of the
  /// ucontext_t that registers are still in which nobody saved; k_no_context: those are written here alone.
  /// Precondition: column >= 0. Error read_only_register, and nothing has changed.
  Status write(int column, std::uint64_t value, Addr context) noexcept;

  // Inline in cursor_step_internal.h. Precondition: the space keeps rows.

  /// False where apply_row() must decide.
  bool find_caller(const CompactRow& row, CompactCaller& out) noexcept;
  void go_to(const CompactCaller& caller, const CompactRow& row) noexcept;
  void go_to(const CompactCaller& caller) noexcept;  ///< comes after restore_saved()
  /// Finds the caller where the saved registers cannot be seen in place: in other targets.
  bool find_caller(const CompactRow& row, CopiedCaller& out) noexcept;
  void go_to(const CopiedCaller& caller, const CompactRow& row) noexcept;

  /// Finds the caller by the full evaluator, apply_row(). Error bad_signature at this frame's pc, if the space has
  /// keys: the row says that the return address is signed, and it is not, or not for this place.
  Status find_caller(const FrameRow& row, Caller& out) noexcept {
    const Status applied = apply_row(row, registers_, space_->arch, space_->memory, window_, out);
    return applied && space_->keys ? authenticate(row, out) : applied;
  }
  void go_to(const Caller& caller, const FrameRow& row) noexcept {
    registers_ = caller.registers;
    arrive(row.signal_frame ? CodeAddress::interrupted(caller.pc) : CodeAddress::returned_to(caller.pc));
  }

  /// Whether a frame of the row has signed its return address over its CFA.
  bool has_signed(const FrameRow& row) const noexcept {
    const RegNum state = space_->arch.sign_state;
    return state != k_no_reg && row.rule(state) == RegRule::constant(1);
  }
  /// Whether a caller would be this frame itself.
  bool is_itself(const CompactCaller& caller) const noexcept;
  bool is_itself(const Caller& caller) const noexcept {
    return caller.pc == pc() && caller.registers.get(space_->arch.column(space_->arch.sp)) == sp();
  }

  const AddressSpace* space_;
  RegisterFile registers_;
  MemoryWindow window_;
  ModuleVersion module_{};  // the module met last
  RulePlace rule_place_{};
  CodeAddress address_;
  std::uint32_t depth_ = 0;

 private:
  Status authenticate(const FrameRow& row, const Caller& caller) const noexcept;
  void arrive(CodeAddress address) noexcept {
    address_ = address;
    ++depth_;
  }
};

/// A walk of this process with all registers begins here: it probes the stack itself, but for the page on which it is
/// running. Precondition: nothing was stepped yet. Signal-safe.
void expect_walk_by(StackPosition& position) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
