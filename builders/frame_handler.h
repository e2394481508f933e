// A C++ function that decides how an exception treats a frame of code made at run time. It serves languages other than
// C++: the run time calls the function for each frame that an exception passes, and no table is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "jitunwind/builders/cpu_register.h"
#include "jitunwind/unwind_core/address.h"

// Types of <unwind.h>.
struct _Unwind_Context;
struct _Unwind_Exception;

#pragma GCC visibility push(default)
namespace jitunwind {

/// A frame of a registered procedure, and the exception that passes it. The object is valid only during the call of the
/// handler. On x86-64 and AArch64 the exception's type is found by the 64-bit layout of the C++ run-time libraries.
class PassedFrame {
 public:
  enum class Phase : std::uint8_t {
    search,   ///< first phase: a handler is sought, and the frame may survive; nothing must be changed yet
    cleanup,  ///< second phase: the frame is about to be left, or entered at a landing pad
  };
  Phase phase() const noexcept { return phase_; }
  /// True for pthread_exit() and pthread_cancel(): there is no search phase, and no frame may catch.
  bool forced() const noexcept { return forced_; }

  /// First byte of the procedure.
  Addr start() const noexcept { return start_; }
  /// Return address of the call.
  Addr pc() const noexcept { return pc_; }
  /// Offset of a byte of the call instruction from start().
  std::uint64_t call_offset() const noexcept { return call_offset_; }
  /// SP during the call.
  Addr sp() const noexcept;
  static bool has_reg(RegNum dwarf) noexcept;  ///< whether reg() accepts this register
  /// Value of a general register that calls preserve. Other registers have no value any more: reg() terminates.
  std::uint64_t reg(RegNum dwarf) const;
  template <class Cpu>
  std::uint64_t reg(CpuRegister<Cpu> preserved) const {
    return reg(preserved.dwarf());
  }

  _Unwind_Exception* exception() const noexcept { return exception_; }
  /// Type of the thrown object if this is a C++ exception; else null.
  const std::type_info* thrown_type() const noexcept;
  /// The thrown object if this is a C++ exception; else null.
  void* thrown_object() const noexcept;

 private:
  friend class FramePersonality;
  PassedFrame() = default;

  Phase phase_ = Phase::search;
  bool forced_ = false;
  Addr start_ = 0;
  Addr pc_ = 0;
  std::uint64_t call_offset_ = 0;
  _Unwind_Exception* exception_ = nullptr;
  _Unwind_Context* context_ = nullptr;
};

/// The treatment of the frame that the handler chooses.
class FrameDecision {
 public:
  /// Lets the exception pass the frame.
  static FrameDecision pass() noexcept { return FrameDecision(Kind::pass, 0); }
  /// Catches the exception: the code continues at `pad`, an address in the procedure, and owns the exception. It ends
  /// it by __cxa_begin_catch(), which returns thrown_object(), and __cxa_end_catch(); or by _Unwind_DeleteException().
  static FrameDecision catch_at(Addr pad) noexcept { return FrameDecision(Kind::catches, pad); }
  /// Runs the code at `pad`, which ends in _Unwind_Resume(exception), on the way to the frame that catches. The handler
  /// is then called again for this frame, at that call; call_offset() shows it. The search phase treats the decision as
  /// pass(): a frame that catches must not clean up first, because the code at the landing pad of catch_at() does so.
  static FrameDecision clean_up_at(Addr pad) noexcept { return FrameDecision(Kind::cleans_up, pad); }

  /// Sets SP at the landing pad, by default SP of the call: aligned, inside the frame, not below SP of the call.
  FrameDecision& with_sp(Addr sp) noexcept { return sp_ = sp, *this; }
  /// Sets a preserved register, rax (x0) or rdx (x1) at the landing pad. The defaults are the frame's values for the
  /// preserved ones, the exception for rax (x0), and 0 for rdx (x1).
  FrameDecision& with(RegNum dwarf, std::uint64_t value);
  template <class Cpu>
  FrameDecision& with(CpuRegister<Cpu> reg, std::uint64_t value) {
    return with(reg.dwarf(), value);
  }

 private:
  friend class FramePersonality;
  enum class Kind : std::uint8_t { pass, catches, cleans_up };
  struct Value {
    RegNum reg;
    std::uint64_t value;
  };
  FrameDecision(Kind kind, Addr pad) noexcept : kind_(kind), pad_(pad) {}

  Kind kind_;
  Addr pad_;
  std::optional<Addr> sp_;
  std::vector<Value> registers_;
};

/// The handler runs in the search phase and, if the exception is caught, again when the frame is left or entered: both
/// calls must decide the same. Throwing threads call it, several at once. It may allocate, lock, throw and catch.
///
/// std::terminate() is called, after a line on standard error that names procedure and offset, when an exception leaves
/// the handler or the decision is impossible: a landing pad outside the procedure; an SP below SP of the call, outside
/// the frame or misaligned; a register that calls do not preserve; a catch of forced unwinding, or of an exception that
/// passed in the search phase; a pass of an exception that was caught there; endless cleanup.
///
/// A handler holds any copyable function object of this type, or none. Copies share the object.
class FrameHandler {
 public:
  FrameHandler() noexcept = default;
  FrameHandler(std::nullptr_t) noexcept {}
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FrameHandler> &&
           std::is_invocable_r_v<FrameDecision, const std::decay_t<F>&, const PassedFrame&>)
      FrameHandler(F&& function) {
    if constexpr (k_may_be_none<std::remove_cvref_t<F>>)
      if (function == nullptr) return;
    function_ = new Of<std::decay_t<F>>(std::forward<F>(function));
  }
  FrameHandler(const FrameHandler& other) noexcept;
  FrameHandler(FrameHandler&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  FrameHandler& operator=(FrameHandler other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  ~FrameHandler();

  explicit operator bool() const noexcept { return function_ != nullptr; }
  /// Precondition: there is a function.
  FrameDecision operator()(const PassedFrame& frame) const { return function_->call(frame); }

 private:
  // A lambda without captures compares as the function that it converts to, which is never null.
  template <class F>
  static constexpr bool k_is_function = requires(const F& function) {
    +function;
  };
  template <class F>
  static constexpr bool k_compares = requires(const F& function) {
    function == nullptr;
  };
  template <class F>
  static constexpr bool k_may_be_none = std::is_pointer_v<F> ||
                                        (std::is_class_v<F> && k_compares<F> && !k_is_function<F>);

  struct Function {
    virtual ~Function() = default;
    virtual FrameDecision call(const PassedFrame& frame) const = 0;
    std::size_t users = 1;  // atomic access in handler_draft.cpp alone: <atomic> takes long to compile
  };
  template <class F>
  struct Of final : Function {
    explicit Of(F f) : function(std::move(f)) {}
    FrameDecision call(const PassedFrame& frame) const override { return function(frame); }
    F function;
  };

  Function* function_ = nullptr;
};

}  // namespace jitunwind
#pragma GCC visibility pop
