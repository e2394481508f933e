// This process's own memory where another thread may unmap it at any moment: of a library that is being unloaded, or
// of what the dynamic linker has just freed.
#pragma once

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Every read is one system call that copies, process_vm_readv() of this process, and no load: what is gone, or may not
/// be read, or whose file is truncated (SIGBUS), cannot be read, and nothing else happens. Where that call is not
/// allowed (seccomp), what is read goes through a pipe, in five calls. Nothing is viewed in place, nothing can be
/// written. Stateless, constant-initialised, signal-safe, thread-safe.
class CopiedMemory final : public Memory {
 public:
  constexpr CopiedMemory() = default;
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
};

// Without a window.

/// By process_vm_readv() alone; -1: it may not be called.
long copy_at_once(Addr at, std::span<std::byte> into) noexcept;
/// As CopiedMemory reads what may be unloaded.
std::size_t copy_memory(Addr at, std::span<std::byte> into) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
