// This process's own memory, read without ever faulting.
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A page that the walk has not proven readable yet is probed once by a system call that fails with EFAULT instead of
/// raising SIGSEGV. Proven pages are read directly. If a sandbox answers such calls itself, only memory that can be
/// copied (process_vm_readv) is readable; if that is refused, too, walks end early. The thread's own stack is no
/// exception: a page of it that was unmapped since the last walk is an error. A page that another thread or the program
/// itself unmaps between two steps of one walk cannot be guarded against. Stateless, constant-initialised, signal-safe,
/// thread-safe.
class LocalMemory final : public Memory {
 public:
  constexpr LocalMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept override;
  bool tells_executable() const noexcept override { return true; }
  /// Whether the kernel lets the page be executed. The answer "yes" holds for up to a quarter of a second. A query
  /// costs three system calls: openat and close of /proc/thread-self/maps, and between them an ioctl of Linux 6.11. On
  /// older kernels up to 64 KiB of that file are read, some 800 mappings, and both answers hold as long. There is no
  /// answer without /proc, or when more mappings than that come first.
  std::optional<bool> is_executable(Addr at, MemoryWindow& window) const noexcept override;
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;
};

}  // namespace jitunwind
#pragma GCC visibility pop
