// A forked child that executes one instruction at a time, and its memory.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind::stepping {

/// The memory of another process. A block around the stack pointer is cached between two steps.
class ChildMemory final : public Memory {
 public:
  explicit ChildMemory(pid_t pid) noexcept : pid_(pid) {}

  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  /// One of these follows each step, because the cached block is stale.
  void reload_around(Addr sp) noexcept;
  void forget() noexcept { kept_size_ = 0; }

 private:
  std::size_t read_child(Addr at, std::span<std::byte> into) const noexcept;

  pid_t pid_;
  Addr kept_at_ = 0;
  std::size_t kept_size_ = 0;
  std::array<std::byte, 1024> kept_{};
};

/// Vector registers by DWARF number, 16 bytes each.
using VectorRegisters = std::array<std::array<std::byte, 16>, 16>;

class SteppedChild {
 public:
  enum class State { stopped, exited, killed };

  /// Forks. The child runs `body` and exits with its result; it is stopped before the first instruction that step()
  /// executes. Throws std::runtime_error when there is no child or it cannot be traced.
  explicit SteppedChild(const std::function<int()>& body);
  /// Kills the child if it still exists.
  ~SteppedChild();
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;

  /// Executes one instruction or, when a signal is delivered, stops at the first instruction of its handler. Killed: a
  /// signal ended the child, or tracing failed; why() gives the reason.
  State step();
  /// True when the last step delivered a signal.
  bool signalled() const noexcept { return signalled_; }
  /// Reads every register to which the CPU's table gives a place in NT_PRSTATUS. Valid while stopped.
  void read_registers(const Arch& arch, RegisterFile& out) const;
  /// Reads the vector registers of x86-64.
  VectorRegisters read_vector_registers() const;
  ChildMemory& memory() noexcept { return memory_; }
  int exit_status() const noexcept { return exit_status_; }
  const std::string& why() const noexcept { return why_; }

 private:
  State end(State state, std::string why);

  pid_t pid_;
  ChildMemory memory_;
  State state_ = State::stopped;
  bool signalled_ = false;
  int exit_status_ = -1;
  std::string why_;
  cpu_set_t affinity_;
};

}  // namespace jitunwind::stepping
