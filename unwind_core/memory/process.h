// Memory of another process of this machine.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "jitunwind/unwind_core/memory/memory.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Every read is one process_vm_readv(2), however large; where that is refused (a sandbox, an old kernel) one pread(2)
/// of `mem`. Keeps nothing, so that it is right while the process runs. Both need what ptrace(2) calls
/// PTRACE_MODE_ATTACH. process_vm_readv() reads what the process runs now, `mem` what it ran when that was opened, and
/// nothing once it has executed another program: proc_pid_mem(5). Thread-safe.
class ProcessMemory final : public Memory {
 public:
  /// `mem`: /proc/PID/mem, open for as long as this lives; -1: not open.
  explicit ProcessMemory(pid_t process, int mem = -1) noexcept : process_(process), mem_(mem) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  /// Reads pages of this machine, one behind the other into `into`, which has room for all: one process_vm_readv(2) of
  /// as many as that takes. Returns how many, from the first on.
  std::size_t read_pages(std::span<const Addr> pages, std::span<std::byte> into) const noexcept;
  /// Whether all reads are of `mem` from now on, where that is open.
  void read_by_file_alone(bool by_file) noexcept { is_by_file_.store(by_file && mem_ >= 0, std::memory_order_relaxed); }
  /// As ptrace writes: to memory that the process itself may only read, too, where `mem` is open for writing.
  bool write(Addr at, std::span<const std::byte> from, MemoryWindow& window) const noexcept override;

 private:
  bool asks_kernel_to_copy() const noexcept {
    return !is_refused_.load(std::memory_order_relaxed) && !is_by_file_.load(std::memory_order_relaxed);
  }

  pid_t process_;
  int mem_;
  std::atomic<bool> is_by_file_{false};
  mutable std::atomic<bool> is_refused_{false};  // process_vm_readv, once and for all
};

}  // namespace jitunwind
#pragma GCC visibility pop
