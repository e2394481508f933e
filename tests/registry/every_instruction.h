// Runs code of this thread with a signal handler behind every single instruction (x86: the trap flag). The handler may
// do everything that a handler may do which interrupts the code there.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>

#include "trap_flag.h"

namespace registry_test {

class EveryInstruction {
 public:
  using Visit = void (*)(void* argument);

  EveryInstruction() noexcept {
    struct sigaction action {};
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~EveryInstruction() { sigaction(SIGTRAP, &before_, nullptr); }
  EveryInstruction(const EveryInstruction&) = delete;
  EveryInstruction& operator=(const EveryInstruction&) = delete;

  /// Returns the number of instructions, counted up to the `last`. `visit` runs behind each one from the `first` to the
  /// `last`, with the trap flag off.
  template <class Code>
  std::size_t run(Visit visit, void* argument, Code&& code, std::size_t first = 0,
                  std::size_t last = ~std::size_t{0}) noexcept {
    visit_ = visit;
    argument_ = argument;
    first_ = first;
    last_ = last;
    count_ = 0;
    set_trap_flag();
    code();
    clear_trap_flag();
    return count_;
  }

  /// The context that the visit has interrupted.
  static const ucontext_t* interrupted() noexcept { return interrupted_; }
  /// Makes this visit the last one.
  static void stop() noexcept { last_ = 0; }

 private:
  static constexpr unsigned long k_trap_flag = 0x100;  // Intel SDM 1, 3.4.3.3

  // The kernel clears the flag for the handler and sets it again when the handler returns.
  static void trapped(int, siginfo_t*, void* context) noexcept {
    const std::size_t n = count_++;
    interrupted_ = static_cast<const ucontext_t*>(context);
    if (n >= first_) visit_(argument_);
    auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    if (n >= last_) flags &= ~static_cast<greg_t>(k_trap_flag);
  }

  struct sigaction before_ {};
  static inline thread_local Visit visit_ = nullptr;
  static inline thread_local void* argument_ = nullptr;
  static inline thread_local const ucontext_t* interrupted_ = nullptr;
  static inline thread_local std::size_t first_ = 0;
  static inline thread_local std::size_t last_ = 0;
  static inline thread_local std::size_t count_ = 0;
};

}  // namespace registry_test
