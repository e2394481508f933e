// Facts that the kernel tells about another thread that shares this memory. It is a thread of this process, or of one
// that was started with CLONE_VM, as by vfork(), or that has started this one so. All functions are signal-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace jitunwind {

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

}  // namespace jitunwind
