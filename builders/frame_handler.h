// Deciding in C++ what an exception does to a frame of code made at run time, for languages that are not C++: no table,
// a function that is asked about each frame which an exception is passing.
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

// Of <unwind.h>.
struct _Unwind_Context;
struct _Unwind_Exception;

#pragma GCC visibility push(default)
namespace jitunwind {

/// A frame of a registered procedure, and the exception that passes it. Only valid during the call of the handler.
/// x86-64 and AArch64: the exception's type is found by the 64-bit layout of the C++ run-time libraries.
class PassedFrame {
 public:
  enum class Phase : std::uint8_t {
    search,   ///< who catches it is looked for; the frame may stay: nothing must be changed yet
    cleanup,  ///< the frame is about to be left, or entered at a landing pad
  };
  Phase phase() const noexcept { return phase_; }
  /// pthread_exit(), pthread_cancel(): there is no search, and nobody may catch it.
  bool forced() const noexcept { return forced_; }

  /// First byte of the procedure.
  Addr start() const noexcept { return start_; }
  /// Where the call would have returned to.
  Addr pc() const noexcept { return pc_; }
  /// Of a byte of the call instruction, in the procedure.
  std::uint64_t call_offset() const noexcept { return call_offset_; }
  /// During the call.
  Addr sp() const noexcept;
  static bool has_reg(RegNum dwarf) noexcept;  ///< whether reg() may be asked for it
  /// What a general register that calls preserve holds in the frame; others have no value any more: terminates.
  std::uint64_t reg(RegNum dwarf) const;
  template <class Cpu>
  std::uint64_t reg(CpuRegister<Cpu> preserved) const {
    return reg(preserved.dwarf());
  }

  _Unwind_Exception* exception() const noexcept { return exception_; }
  /// Of a C++ exception the type that was thrown; null for others.
  const std::type_info* thrown_type() const noexcept;
  /// Of a C++ exception what was thrown; null for others.
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

/// What is to become of the frame.
class FrameDecision {
 public:
  /// The exception passes.
  static FrameDecision pass() noexcept { return FrameDecision(Kind::pass, 0); }
  /// It ends here: the code goes on at `pad`, an address in the procedure, and owns the exception
  /// (__cxa_begin_catch(), which returns thrown_object(), and __cxa_end_catch(); or _Unwind_DeleteException()).
  static FrameDecision catch_at(Addr pad) noexcept { return FrameDecision(Kind::catches, pad); }
  /// On the way to the frame that catches it the code at `pad` runs, which ends in _Unwind_Resume(exception). The
  /// handler is then asked about the frame again, at that call: call_offset() tells. The same as pass() in the search:
  /// a frame that catches must not clean up so first, its code at catch_at()'s landing pad does.
  static FrameDecision clean_up_at(Addr pad) noexcept { return FrameDecision(Kind::cleans_up, pad); }

  /// At the landing pad SP is that of the call; or this one: not below, inside of the frame, aligned.
  FrameDecision& with_sp(Addr sp) noexcept { return sp_ = sp, *this; }
  /// At the landing pad preserved registers are those of the frame, rax (x0) has the exception, rdx (x1) 0; or this.
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

/// Asked in the search, and, where the exception is caught, once more when the frame is left: it must decide the same.
/// Called by any thread that throws, several at once; may allocate, lock, and throw and catch inside.
///
/// std::terminate(), after a line on standard error that names procedure and offset, where it lets an exception out,
/// or decides what cannot be: a landing pad outside of the procedure; an SP below that of the call, outside of the
/// frame or not aligned; a register that calls do not preserve; to catch what is forced or what it passed in the
/// search, or to pass what it caught there; to clean up for ever.
///
/// Any copyable function object of this type, or none. Copies share the object.
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
  // A lambda without captures is compared as the function that it converts to, which there always is.
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
    std::size_t users = 1;  // counted atomically, in frame_handler.cpp alone: <atomic> takes long to compile
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
