// Memory of another process of this machine.
#pragma once

#include <sys/types.h>

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Every read is one pread(2) of `mem`, however large, and nothing where the process has executed another program since
/// that was opened: proc_pid_mem(5). It waits for nobody who serves pages (userfaultfd(2)): such a page cannot be read.
/// Without `mem` it is one process_vm_readv(2), of what the process runs now. Both need what ptrace(2) calls
/// PTRACE_MODE_ATTACH. Keeps nothing, so that it is right while the process runs. Thread-safe.
class ProcessMemory final : public Memory {
 public:
  /// `mem`: /proc/PID/mem, open for as long as this lives; -1: not open.
  explicit ProcessMemory(pid_t process, int mem = -1) noexcept : process_(process), mem_(mem) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  /// As ptrace writes: to memory that the process itself may only read, too, where `mem` is open for writing.
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;

 private:
  pid_t process_;
  int mem_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
