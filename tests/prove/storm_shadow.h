// A storm thread's record of its own calls, and the judgement of walks by it.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::storm {

/// A frame that has called: the address to which the call returns, and SP there.
struct Call {
  void* pc;
  void* sp;
};

/// The thread writes it and its handlers read it: a call is on it after the one instruction that moves `top`.
struct Shadow {
  Call* top = nullptr;  ///< the first member: code made at run time and the plugin push here as well
  /// While the stack is being unwound: the calls below are still on it, those above may be gone. Null: all are there.
  Call* certain = nullptr;
  Call* base = nullptr;  ///< of the thread itself
  bool is_kept = false;
  std::array<Call, 256> calls{};

  std::span<const Call> all() const { return {calls.data(), static_cast<std::size_t>(top - calls.data())}; }
  std::size_t count_of_certain() const {
    return static_cast<std::size_t>((certain != nullptr && certain < top ? certain : top) - calls.data());
  }
};

/// Orders writes for handlers: they see the earlier before the later.
inline void in_order() { asm volatile("" ::: "memory"); }

/// Pushes the frame that called the enclosing function, as long as the object lives. Every function between two that
/// push must push as well.
class Pushed {
 public:
  [[gnu::always_inline]] explicit Pushed(Shadow& shadow, void* pc = __builtin_return_address(0),
                                         void* sp = __builtin_dwarf_cfa())
      : shadow_(shadow), before_(shadow.top) {
    *before_ = {pc, sp};
    in_order();
    shadow.top = before_ + 1;
    in_order();
  }
  [[gnu::always_inline]] ~Pushed() {
    in_order();
    shadow_.top = before_;
    in_order();
  }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  Shadow& shadow_;
  Call* before_;
};

/// Lives in the function that throws or is cancelled: after it has come back, frames leave one by one.
class Leaving {
 public:
  explicit Leaving(Shadow& shadow) : shadow_(shadow) {}
  ~Leaving() {
    shadow_.certain = shadow_.base;
    in_order();
  }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  Shadow& shadow_;
};

/// A frame that a walk found. `sp` 0: the walk does not tell.
struct Walked {
  Addr pc;
  Addr sp;
};

enum class Verdict { right, wrong, too_short };

/// Returns whether code at an address was made at run time, and pushes itself before it calls.
using IsProcedure = bool (*)(Addr pc);

/// Judges a walk: it must have all frames of the shadow, each with its SP, and nothing in between. No procedure may
/// be in the inner frames, where nothing has been pushed yet, except for the interrupted one. `interrupted` 0: not
/// known.
Verdict judge(const Shadow& shadow, std::span<const Walked> walk, Addr interrupted, IsProcedure is_procedure) noexcept;

}  // namespace jitunwind::storm
