// This process's own memory, read without ever faulting.
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A page that the walk has not proven readable yet is probed once by a system call that answers EFAULT instead of
/// raising SIGSEGV; proven pages are read directly. In a sandbox that answers such calls itself nothing is readable but
/// what a copy shows (process_vm_readv); where that is refused too, walks end early. The thread's own stack is no
/// exception: a page of it that was taken away since the last walk is an error. Stateless, constant-initialised,
/// signal-safe, thread-safe. A page that is taken away between two steps of one walk, by another thread or by the
/// program itself, is outside what can be guarded.
class LocalMemory final : public Memory {
 public:
  constexpr LocalMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  const std::byte* view(Addr at, std::size_t size, MemoryWindow& window) const noexcept override;
  bool tells_executable() const noexcept override { return true; }
  /// What the kernel says of the page; that it may be executed holds for up to a quarter of a second. Costs three
  /// system calls (openat and close of /proc/thread-self/maps, an ioctl of Linux 6.11 between them). Older kernels are
  /// asked by reading up to 64 KiB of that file, some 800 mappings, and what that tells is kept as long. Nothing where
  /// there is no /proc, or where more mappings than that come first.
  std::optional<bool> is_executable(Addr at, MemoryWindow& window) const noexcept override;
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;
};

}  // namespace jitunwind
#pragma GCC visibility pop
