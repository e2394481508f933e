// The question whether a stack frame can still be active, judged from the present stack pointer of its thread.
#pragma once

#include <cstdint>
#include <optional>

namespace jitunwind {

// Facts that the kernel tells about another thread that shares this memory. It is a thread of this process, or of one
// that was started with CLONE_VM, as by vfork(), or that has started this one so. All functions are signal-safe.

/// Returns the kernel's id of the thread whose thread-local variables these are. That is the calling thread, or the
/// parent in a child that runs with its parent's variables (vfork).
std::uint32_t this_thread_id() noexcept;

/// Returns false if no thread has the id. The result is also true for a thread of an unrelated process:
/// read_thread_status() tells that it is another.
bool thread_exists(std::uint32_t thread) noexcept;

struct ThreadStatus {
  char state = 0;                 ///< 'Z' or 'X' if the thread has exited
  std::uint64_t start_ticks = 0;  ///< clock ticks since boot
};
/// Returns nothing if the kernel does not tell.
std::optional<ThreadStatus> read_thread_status(std::uint32_t thread) noexcept;

/// Converts a CLOCK_BOOTTIME to the unit of ThreadStatus::start_ticks, rounded down.
std::uint64_t ticks_since_boot(std::uint64_t boot_time_ns) noexcept;
std::uint64_t boot_time_ns() noexcept;

/// Returns the stack pointer of a thread of this process that is blocked in the kernel, or nothing if it runs or the
/// kernel does not tell.
std::optional<std::uint64_t> read_blocked_stack_pointer(std::uint32_t thread) noexcept;

// A frame on a stack of such a thread can be active or left.

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
