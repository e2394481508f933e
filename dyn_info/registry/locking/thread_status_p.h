// What the kernel tells about another thread that shares this memory: of this process, or of one that was started with
// CLONE_VM, as by vfork(), or has started this one so. Signal-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace jitunwind {

/// The kernel's id of the thread whose thread-local variables these are: the calling thread, but in a child that runs
/// with its parent's (vfork) the parent.
std::uint32_t this_thread_id() noexcept;

/// False: no thread has the id. True also for one of a process that has nothing to do with this one:
/// read_thread_status() tells that it is another.
bool thread_exists(std::uint32_t thread) noexcept;

struct ThreadStatus {
  char state = 0;                 ///< 'Z', 'X': has exited
  std::uint64_t start_ticks = 0;  ///< since boot
};
/// Empty: cannot tell.
std::optional<ThreadStatus> read_thread_status(std::uint32_t thread) noexcept;

/// CLOCK_BOOTTIME in the unit of ThreadStatus::start_ticks, rounded down.
std::uint64_t ticks_since_boot(std::uint64_t boot_time_ns) noexcept;
std::uint64_t boot_time_ns() noexcept;

/// Stack pointer of a thread of this process that is blocked in the kernel. Empty: it runs, or cannot tell.
std::optional<std::uint64_t> read_blocked_stack_pointer(std::uint32_t thread) noexcept;

}  // namespace jitunwind
