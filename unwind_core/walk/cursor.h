// The walk: a position on a stack, and the step to its caller.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "jitunwind/unwind_core/walk/stack_position.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Why a walk cannot go on. Frames already found stay valid whatever the reason.
enum class StopReason : std::uint8_t {
  none,       ///< it can
  outermost,  ///< unwind information says that there is no caller, or that its address is 0: a complete stack
  no_info,    ///< nothing knows the code at this pc, and no guess at its caller can be confirmed
  broken,     ///< a source covers this pc, but what it has is broken, could not be applied, or leads to what is no code
  cyclic,     ///< the same frames again
  limit,      ///< more frames than Cursor::k_max_frames
};

/// "no_info". Never null. Signal-safe.
const char* stop_reason_name(StopReason reason) noexcept;

/// A position on a stack. Plain data: copies are independent, so that keeping a copy is how to go back down. Used by
/// one thread at a time. All functions are signal-safe where the address space's memory, modules and sources are (the
/// local space is); none allocates or locks. Their use of the stack: docs/contracts.md "Stack".
class Cursor : public StackPosition {
 public:
  /// How the innermost pc was reached.
  enum class Top : std::uint8_t { returned_to, interrupted };

  /// `space` must outlive the cursor and its copies. `argument` is passed on to the space's memory. `context` is the
  /// address in the target of the ucontext_t that the registers are from, if it outlives the cursor: set() writes there
  /// too. 0: set() writes to the cursor alone.
  Cursor(const AddressSpace& space, const RegisterFile& registers, Top top, void* argument = nullptr,
         Addr context = 0) noexcept;
  /// A cursor with the registers of a ucontext_t of this machine, which are copied.
  Cursor(const AddressSpace& space, const void* ucontext, Top top, void* argument = nullptr, Addr context = 0) noexcept
      : StackPosition(space, ucontext), context_(context) {
    begin(top, argument);
  }

  /// Sets which guesses the walk goes on by from here, where nothing else tells a frame's caller. They are confirmed
  /// ones, unless bold ones are asked for; origin() says of each frame which it was left by.
  void set_guesses(Guesses guesses) noexcept { guesses_ = guesses; }

  /// Moves to the caller. True: moved. False: this is the outermost frame, now and at every further call. Error: cannot
  /// tell the caller; the cursor stays where it is, stop_reason() says why, and every further call gives the same
  /// error.
  Result<bool> step() noexcept;
  /// Moves by a row that the caller answers for: nothing is looked up.
  Result<bool> step_by(const FrameRow& row) noexcept;

  /// The value of a register by its DWARF number. bad_register: no such register on this CPU; undefined_register: no
  /// value in this frame, as scratch registers of calling frames.
  Result<std::uint64_t> get(RegNum reg) const noexcept;
  /// Writes to where the register of this frame is kept: a slot in memory, which counts when the frame is returned to,
  /// or the context the walk began with. The cursor keeps registers without a place of their own (SP, exception
  /// registers); all of it counts for resume(), and for step(). Exception registers can be written in every frame,
  /// others where they have a value. A written pc is taken for the next instruction, not for a return address. The new
  /// pc is signed as well if the frame below has signed its return address. Errors: bad_register; undefined_register;
  /// read_only_register: memory that cannot be written, or a signed pc of another process, whose keys nobody has.
  Status set(RegNum reg, std::uint64_t value) noexcept;
  /// Sets a register of the frame in which the walk began, whose value is known only now. It is for whoever reads the
  /// target's registers one by one. No frame has saved the register since. Precondition: a register with a column.
  void know(RegNum reg, std::uint64_t value) noexcept {
    registers_.set_from_register(space_->arch.column(reg), value, reg);
  }
  /// Kind none for registers without a place of their own.
  SaveLocation location(RegNum reg) const noexcept;

  /// The row at this frame. Error no_info when there is none.
  Status find_row(FrameRow& out) const noexcept;
  /// The procedure of the code at this frame. Error no_info when nothing knows it.
  Result<ProcedureInfo> procedure() noexcept;
  /// Precondition: !into.empty(). Error no_info when there is no name.
  Result<ProcedureName> name(std::span<char> into) const noexcept;
  /// The origin of this frame's row; none when there is no row.
  RowOrigin origin() const noexcept;
  /// True where the caller of this frame was interrupted by a signal.
  Result<bool> is_signal_frame() const noexcept;

  /// The kernel's ucontext_t of the outermost signal frame that this walk has passed, or began in; 0: none. `pc` of the
  /// code it was found by, 0 where the walk began with it; `depth` of the frame that was interrupted.
  struct SignalContext {
    Addr ucontext = 0;
    Addr pc = 0;
    std::uint32_t depth = 0;
  };
  const SignalContext& signal_context() const noexcept { return signal_; }
  /// The bytes that a resume at a written pc adds to SP: arguments that were pushed for the call there
  /// (DW_CFA_GNU_args_size). 0 where the pc was not written: code behind a call takes its arguments off itself.
  std::uint32_t pushed_arguments() const noexcept { return pushed_arguments_; }
  /// SP as the walk found it, whatever set() has made of it.
  Addr frame_sp() const noexcept { return sp_written_ ? frame_sp_ : sp(); }
  /// set() has changed the pc of this frame.
  bool pc_written() const noexcept { return pc_written_; }

  StopReason stop_reason() const noexcept { return stop_; }
  /// Meaningful unless stop_reason() is none or outermost.
  const Error& stop_error() const noexcept { return error_; }

  /// The argument that the constructor was given.
  void* argument() const noexcept { return window_.argument; }

 private:
  friend struct CursorStep;

  void begin(Top top, void* argument) noexcept {
    if (top == Top::interrupted) signal_.ucontext = context_;
    window_.argument = argument;
    const Addr pc = pc_in_register();
    address_ = top == Top::interrupted ? CodeAddress::interrupted(pc) : CodeAddress::returned_to(pc);
  }
  void go_on_at(Addr pc) noexcept;
  /// The value to write for a pc of this frame: a frame below that has signed its return address authenticates it, so
  /// that another one has to be signed, too. Error read_only_register: this process has not the keys.
  Result<std::uint64_t> sign_as_present(Addr pc) const noexcept;
  /// How `row` has the return address signed, as pc_signature_.
  std::uint8_t signature_by(const FrameRow& row) const noexcept {
    return has_signed(row) ? static_cast<std::uint8_t>(1 + static_cast<int>(row.signing_key)) : std::uint8_t{0};
  }
  std::uint8_t signature_by(const CompactRow&) const noexcept { return 0; }  // a row with a signature is none
  Result<bool> stop(StopReason reason, const Error& error) noexcept;
  Result<bool> stop_without_row(const Error& error) noexcept;
  /// no_info, and why: what the code's file has may be compressed.
  Error unknown_code() const noexcept;
  bool repeats(Addr pc, Addr cfa) noexcept;
  /// Whether the caller that a row leads to is code. Precondition: no signal interrupted it; that may happen anywhere.
  bool leads_to_code(Addr pc) noexcept;
  bool leads_to_other_code(Addr pc) noexcept;
  /// Goes to either kind of caller. False, and nothing has changed: it was seen before.
  template <class C, class Row>
  bool go_on_to(const C& caller, const Row& row) noexcept;
  // Inline in cursor_step_internal.h, as are repeats(), leads_to_code() and go_on_to().
  /// False: the cache does not help here. step_by_sources() takes the ticket.
  bool step_by_kept(KeepTicket& ticket) noexcept;
  /// False, and nothing has changed: the full row has to decide.
  bool leave_by(const CompactRow& row) noexcept;
  bool leave_by_copy(const CompactRow& row) noexcept;
  Result<bool> step_by_sources(const KeepTicket& ticket) noexcept;
  Result<bool> leave_by_sources(KeepTicket ticket) noexcept;
  Result<bool> leave_by(const FrameRow& row) noexcept;
  /// The result of every further step. Nothing: there may be a caller.
  std::optional<Result<bool>> at_end() noexcept;
  /// The sources' answer, else that of guesses.
  Found ask_for_row(MemoryWindow& window, FrameRow& out) const noexcept;
  /// Asks for a row where there has to be one.
  Status look_for_row(MemoryWindow& window, FrameRow& out) const noexcept;
  /// Facts of a frame's row.
  struct RowKind {
    RowOrigin origin = RowOrigin::none;
    bool is_signal_frame = false;
  };
  /// The facts by what is kept. Nothing: the row has to be found.
  std::optional<RowKind> known_row() const noexcept;
  Result<RowKind> row_kind() const noexcept;

  // These are in one word: unw_cursor_t has room for a cursor of 1016 bytes.
  Guesses guesses_ = Guesses::confirmed;
  StopReason stop_ = StopReason::none;
  bool pc_written_ : 1 = false;
  bool sp_written_ : 1 = false;
  std::uint8_t pc_signature_ : 2 = 0;  // where the pc was saved it is signed: 1 + SigningKey; 0: it is not
  std::uint32_t pushed_arguments_ = 0;
  std::uint32_t next_mark_ = 1;  // Brent's cycle detection: compare with a (pc, CFA) marked at powers of two
  Addr context_ = 0;
  Addr frame_sp_ = 0;
  SignalContext signal_{};
  Addr mark_pc_ = 0;
  Addr mark_cfa_ = 0;
  AddrRange code_{};  // some that callers were in
  Error error_{};
};
static_assert(std::is_trivially_copyable_v<Cursor>);

}  // namespace jitunwind
#pragma GCC visibility pop
