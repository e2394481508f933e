// The question whether a stack frame can still be active, judged from the present stack pointer of its thread.
#pragma once

#include <cstdint>

namespace jitunwind {

/// An address in a stack frame, kept as its complement. Code that handles it thus leaves no word on the stack that
/// looks like a pointer to the frame.
class FramePosition {
 public:
  constexpr FramePosition() noexcept = default;
  constexpr explicit FramePosition(std::uint64_t address) noexcept : hidden_(~address) {}
  static constexpr FramePosition from_hidden(std::uint64_t hidden) noexcept {
    FramePosition position;
    position.hidden_ = hidden;
    return position;
  }

  constexpr std::uint64_t hidden() const noexcept { return hidden_; }
  /// The position is unknown: no frame is at address 0.
  constexpr bool unknown() const noexcept { return hidden_ == ~std::uint64_t{0}; }
  /// address - other; negative results wrap.
  constexpr std::uint64_t above(std::uint64_t other) const noexcept { return ~other - hidden_; }
  constexpr bool is_below(std::uint64_t other) const noexcept { return hidden_ > ~other; }

 private:
  std::uint64_t hidden_ = ~std::uint64_t{0};
};

/// Whether the frame can still be active while its thread's stack pointer is `sp`. False only if it was left for
/// certain: the stack pointer is above it, and no word on the stack from there on refers to the frame or below it.
/// While a signal handler runs on a stack of its own, the signal frame on that stack has the interrupted stack pointer,
/// which refers there. Work for which such a stack is too small runs on another one, and the search continues at the
/// place where the handler's stack was left. Other words may refer there by chance: the answer is then true, the safe
/// one. `thread_locals` is an address among the thread's: the C library puts them and its own pointers to the stack at
/// the stack's upper end, where the search stops. Signal-safe; reads the stack by system calls.
bool frame_may_be_alive(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept;

}  // namespace jitunwind
