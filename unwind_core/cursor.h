// The walk: a position on a stack, and the step to its caller.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "unwind_core/address_space.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Why a walk cannot go on. Frames already found stay valid whatever the reason.
enum class StopReason : std::uint8_t {
  none,       ///< it can
  outermost,  ///< the code says that it has no caller, or its return address is 0: a complete stack
  no_info,    ///< nothing knows the code at this pc, and no frame record was found either
  broken,     ///< a source covers this pc, but what it has is broken, or the row could not be applied
  cyclic,     ///< the same frames again
  limit,      ///< more frames than Cursor::k_max_frames
};

/// "no_info". Never null. Signal-safe.
const char* stop_reason_name(StopReason reason) noexcept;

/// A position on a stack. Plain data: copies are independent, so that keeping a copy is how to go back down. Used by
/// one thread at a time. All functions are signal-safe where the address space's memory, modules and sources are (the
/// local space is); none allocates or locks.
class Cursor {
 public:
  /// How the innermost pc was reached.
  enum class Top : std::uint8_t { returned_to, interrupted };

  static constexpr std::uint32_t k_max_frames = 1u << 24;

  /// `space` must outlive the cursor and its copies. `argument` is passed on to the space's memory.
  Cursor(const AddressSpace& space, const RegisterFile& registers, Top top, void* argument = nullptr) noexcept;

  /// To the caller. True: moved. False: this is the outermost frame, now and at every further call. Error: cannot tell
  /// the caller; the cursor stays where it is, stop_reason() says why, and every further call gives the same error.
  Result<bool> step() noexcept;

  CodeAddress address() const noexcept { return address_; }
  Addr pc() const noexcept { return address_.value(); }
  Addr sp() const noexcept;
  /// Number of steps made since construction.
  std::uint32_t depth() const noexcept { return depth_; }

  /// By DWARF number. bad_register: no such register on this CPU; undefined_register: no value in this frame, as
  /// scratch registers of calling frames.
  Result<std::uint64_t> get(RegNum reg) const noexcept;
  /// Kind none for registers without a place of their own.
  SaveLocation location(RegNum reg) const noexcept;
  const RegisterFile& registers() const noexcept { return registers_; }

  /// The row at this frame. Error no_info when there is none.
  Status find_row(FrameRow& out) noexcept;
  /// Of the code at this frame. Error no_info when nothing knows it.
  Result<ProcedureInfo> procedure() noexcept;
  /// Precondition: !into.empty(). Error no_info when there is no name.
  Result<ProcedureName> name(std::span<char> into) noexcept;
  /// Where this frame's row comes from; none when there is no row.
  RowOrigin origin() noexcept;
  /// True where the caller of this frame was interrupted by a signal.
  Result<bool> is_signal_frame() noexcept;

  StopReason stop_reason() const noexcept { return stop_; }
  /// Meaningful unless stop_reason() is none or outermost.
  const Error& stop_error() const noexcept { return error_; }

  const AddressSpace& space() const noexcept { return *space_; }

 private:
  Lookup lookup() noexcept { return {*space_, address_, window_, &registers_}; }
  Result<bool> stop(StopReason reason, const Error& error) noexcept;
  bool repeats(Addr pc, Addr cfa) noexcept;

  const AddressSpace* space_;
  RegisterFile registers_;
  MemoryWindow window_;
  CodeAddress address_;
  std::uint32_t depth_ = 0;
  StopReason stop_ = StopReason::none;
  bool row_known_ = false;  // origin_ and signal_frame_ belong to this frame
  RowOrigin origin_ = RowOrigin::none;
  bool signal_frame_ = false;
  std::uint32_t next_mark_ = 1;  // Brent's cycle detection: compare with a (pc, CFA) marked at powers of two
  Addr mark_pc_ = 0;
  Addr mark_cfa_ = 0;
  Error error_{};
};
static_assert(std::is_trivially_copyable_v<Cursor>);

}  // namespace jitunwind
#pragma GCC visibility pop
