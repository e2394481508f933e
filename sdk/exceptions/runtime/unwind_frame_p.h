// One frame as the exception runtime sees it: a position on this thread's stack. The ABI calls it a context;
// personality routines look at it and change it.
#pragma once

#include <unwind.h>

#include <cstdint>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/walk/stack_position.h"

namespace jitunwind::eh {

/// Facts of a frame's procedure. They are kept by the address in it where there is a personality routine.
struct ProcedureFacts {
  Addr personality = 0;
  Addr lsda = 0;
  Addr start = 0;  ///< of the procedure

  std::uint64_t digest() const noexcept { return hash_with(hash_with(spread(personality), lsda), start); }
};

class UnwindFrame : public StackPosition {
 public:
  enum class Known : std::uint8_t {
    found,
    end,     ///< no caller, or code that nothing knows: see is_outermost()
    broken,  ///< see error()
  };

  /// `entry` as unwind_core/arch/*/exceptions.S store it: the caller of the function of the ABI. `row` outlives the
  /// frame and its copies, of which one is in use at a time: rows that are not compact are made there. `walk` tells the
  /// walks of a thread apart that are not over.
  UnwindFrame(const void* entry, FrameRow& row, const void* walk) noexcept;

  /// A plain frame has no personality routine. look() may pass it, and looks at a caller then.
  enum class Plain { looked_at, passed };
  /// Looks up the row and the facts of the code here. Guesses do not count: the registers that they restore may be
  /// wrong.
  Known look(Plain plain = Plain::looked_at) noexcept;
  /// Repeats the lookup in a copy of a frame, after the original went on. The copy has its own results, unless they are
  /// in the row that copies share.
  Known look_again() noexcept { return is_compact_ ? Known::found : look(); }
  /// Moves to the caller. Precondition: look() found something.
  Known step() noexcept;

  bool was_interrupted() const noexcept { return pc() != 0 && !address_.is_return_address(); }
  bool is_outermost() const noexcept { return pc() == 0; }
  Addr sp() const noexcept { return registers_.get(sp_column_).value_or(0); }
  /// Tells frames of one stack apart. It is SP, a multiple of 8 that differs in all frames. A frame that was
  /// interrupted may have its callee's SP, so it counts as one less.
  Addr identity() const noexcept { return sp() - (was_interrupted() ? 1 : 0); }

  // Facts of the code here, as look() found them. All are 0 where it found nothing.

  _Unwind_Personality_Fn personality() const noexcept {
    return reinterpret_cast<_Unwind_Personality_Fn>(static_cast<std::uintptr_t>(facts_.personality));
  }
  Addr lsda() const noexcept { return facts_.lsda; }
  /// The start of a procedure without a personality routine is looked up at its first use.
  Addr start() noexcept;
  /// The global pointer is looked up at each use: it is rarely used, and rows do not depend on it.
  Addr gp() noexcept;

  const Error& error() const noexcept { return error_; }

  /// 0 for registers without a value.
  std::uint64_t get(int reg) const noexcept;
  /// Writes the register's slot where it has one. False: no such register, or the slot cannot be written.
  bool set(int reg, std::uint64_t value) noexcept;
  void set_pc(Addr pc) noexcept;

  /// Goes on here, at the pc that was set. Precondition: look() found something. Returns only on errors.
  Error install() noexcept;

 private:
  Known fail(const Error& error) noexcept;
  bool go_by_links(const RowCache& rows, Plain plain, KeepTicket& ticket) noexcept;
  Known look_at_procedure(const KeepTicket& ticket) noexcept;
  /// `rows`: null in an address space that keeps nothing.
  Known look_anew(const RowCache* rows, KeepTicket& ticket) noexcept;
  void keep(const RowCache& rows, const KeepTicket& ticket, Lookup& asked, const NewRow& row) noexcept;
  /// Finds the procedure and sets its facts. Nothing is found where nothing knows the code.
  Status find_procedure(Lookup& asked) noexcept;
  /// Finds the procedure for an accessor. All is 0 where nothing is found.
  ProcedureInfo find_procedure_anew() noexcept;
  bool find_facts(const KeepTicket& ticket) noexcept;
  /// Whether a rule that is kept so leads to facts.
  CallerRule::Handler handler(KeptBy by) const noexcept;
  /// Keeps the facts for the rule at `rule_place_`, if it leads to any.
  void keep_facts(const KeepTicket& ticket, KeptBy by, const ModuleVersion& module) noexcept;
  Known look_at_frames_of_others() noexcept;
  bool is_of_others(RowOrigin origin) noexcept;
  Known step_by_row() noexcept;
  void set_procedure(const ProcedureInfo& procedure) noexcept;
  /// Goes to either kind of caller. One whose pc is 0 is the end of the stack.
  template <class C, class Row>
  Known go_on_to(const C& caller, const Row& row) noexcept;

  Addr landing_pad_ = 0;  // set_pc()
  ProcedureFacts facts_{};
  KeptRow kept_{};
  Error error_{};
  bool is_compact_ = false;  // the row is kept_.row, else *row_
  std::int8_t sp_column_;
  FrameRow* row_;
  const void* walk_;
};

/// One line that names the frame: "jitunwind: <what> at frame 3, pc 0x7f.. <name+offset>[: <why>]". Signal-safe.
void report(const char* what, const UnwindFrame& frame, const Error* why = nullptr) noexcept;
/// A line without a frame, then abort().
[[noreturn]] void give_up(const char* what) noexcept;

// The other unwinders of this process (accessors.cpp): contexts and exceptions that are theirs go to them.

/// Another runtime's function of this name in the exception ABI: libgcc_s's, or else the next in search order after
/// this library. Null: there is none. Takes no lock; signal-safe.
void* other_function(const char* name) noexcept;
/// The function of that name in the runtime that made `context`.
void* function_of_owner(const _Unwind_Context* context, const char* name) noexcept;

struct ForeignFde {
  Addr fde = 0;
  Addr text_base = 0;
  Addr data_base = 0;
};
/// Call frame information that only another runtime knows, by its _Unwind_Find_FDE(). False: it knows none. Takes its
/// lock.
bool find_fde_of_others(Addr at, ForeignFde& out) noexcept;

/// Exceptions in flight carry their runtime's notes in two private words. The first word of this runtime has these
/// upper bits, which no address has. Its lower bits are the stop function of a forced unwind, 0 for an exception that
/// was raised. The second one is the identity of the handler's frame, or the argument of the stop function.
inline constexpr unsigned k_tag_shift = 56;
inline constexpr std::uint64_t k_tag = std::uint64_t{0x6a} << k_tag_shift;

inline bool is_ours(const _Unwind_Exception& exception) noexcept {
  return exception.private_1 >> k_tag_shift == k_tag >> k_tag_shift;
}

}  // namespace jitunwind::eh

/// The ABI's context. A mark comes first, which no other runtime has there. libgcc begins with a pointer into the
/// stack, LLVM with one to a table of functions, nongnu with one to an address space. No pointer has these upper bits.
struct _Unwind_Context {
  static constexpr std::uint64_t k_mark = 0x6a69'7475'6e77'6e64;

  _Unwind_Context(const void* entry, jitunwind::FrameRow& row, const void* walk) noexcept : frame(entry, row, walk) {}
  _Unwind_Context(const _Unwind_Context&) = default;
  _Unwind_Context& operator=(const _Unwind_Context&) = default;

  std::uint64_t mark = k_mark;
  jitunwind::eh::UnwindFrame frame;
};
