// Whether a stack frame can still be active, judged from where its thread's stack pointer is now.
#pragma once

#include <cstdint>

namespace jitunwind {

/// An address in a stack frame, kept as its complement: code that handles it leaves no word on the stack that looks
/// like a pointer to the frame.
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
  /// Nothing is known of it: no frame is at address 0.
  constexpr bool unknown() const noexcept { return hidden_ == ~std::uint64_t{0}; }
  /// address - other; negative results wrap.
  constexpr std::uint64_t above(std::uint64_t other) const noexcept { return ~other - hidden_; }
  constexpr bool is_below(std::uint64_t other) const noexcept { return hidden_ > ~other; }

 private:
  std::uint64_t hidden_ = ~std::uint64_t{0};
};

/// Whether the frame can still be active while its thread's stack pointer is `sp`. False only when it was left for
/// certain: the stack pointer is above it, and nothing on the stack from there on refers to the frame or to what is
/// below it. While a signal handler runs on a stack of its own, the signal frame on that stack has the interrupted
/// stack pointer, which refers there; what such a stack has too little room for runs on another one, and the search
/// goes on where that was left for it. Other words may by chance: then the answer is true, the safe one.
/// `thread_locals` is an address among the thread's: the C library puts them and its own pointers to the stack on the
/// stack's upper end, where the search stops. Signal-safe; reads the stack by system calls.
bool frame_may_be_alive(FramePosition frame, std::uint64_t sp, std::uint64_t thread_locals) noexcept;

}  // namespace jitunwind
