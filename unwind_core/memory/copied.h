// Memory of this process that another thread may unmap at any moment: that of a library while it is unloaded, or memory
// that the dynamic linker has just freed.
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Every read is one system call that copies, process_vm_readv() of this process, instead of a load. Memory that is
/// unmapped or not readable, or whose file is truncated (SIGBUS), cannot be read; the read has no other effect. If that
/// call is not allowed (seccomp), bytes go through a pipe, in five calls. Nothing is viewed in place and nothing can be
/// written. Stateless, constant-initialised, signal-safe, thread-safe.
class CopiedMemory final : public Memory {
 public:
  constexpr CopiedMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
};

// The following functions need no MemoryWindow.

/// Reads by process_vm_readv() alone. Returns -1 when that call is not allowed.
long copy_at_once(Addr at, std::span<std::byte> into) noexcept;
/// Reads memory that may be unmapped, as CopiedMemory does.
std::size_t copy_memory(Addr at, std::span<std::byte> into) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
