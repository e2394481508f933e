// Memory of another process on this machine.
#pragma once

#include <sys/types.h>

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Every read is one pread(2) of `mem`, whatever its size. It reads nothing after the process has executed another
/// program since `mem` was opened (proc_pid_mem(5)). It does not wait for a server of pages (userfaultfd(2)): such a
/// page cannot be read. If `mem` is not open, a read is one process_vm_readv(2) of the program that the process runs
/// now. Both calls need what ptrace(2) calls PTRACE_MODE_ATTACH. Nothing is kept, so reads are right while the process
/// runs. Thread-safe.
class ProcessMemory final : public Memory {
 public:
  /// `mem` is /proc/PID/mem, open as long as this object lives, or -1.
  explicit ProcessMemory(pid_t process, int mem = -1) noexcept : process_(process), mem_(mem) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  /// Writes as ptrace does. If `mem` is open for writing, memory that the process itself may only read is written, too.
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;

 private:
  pid_t process_;
  int mem_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
