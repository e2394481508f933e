// A forked child that executes one instruction at a time, and its memory.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind::stepping {

/// The memory of another process. Keeps one block around the stack pointer between two steps.
class ChildMemory final : public Memory {
 public:
  explicit ChildMemory(pid_t pid) noexcept : pid_(pid) {}

  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;
  /// After each step one of these: what was kept is out of date.
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

  /// Forks. The child runs body and exits with what it returns; it is stopped before the first instruction that step()
  /// executes. Throws std::runtime_error when there is no child or it cannot be traced.
  explicit SteppedChild(const std::function<int()>& body);
  /// Kills what is left.
  ~SteppedChild();
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;

  /// One instruction, or, when a signal is delivered, up to the first instruction of its handler. Killed: a signal
  /// ended the child, or tracing failed; why() says which.
  State step();
  /// A signal was delivered in the last step.
  bool signalled() const noexcept { return signalled_; }
  /// Valid while stopped: every register that the CPU's table gives a place in NT_PRSTATUS.
  void read_registers(const Arch& arch, RegisterFile& out) const;
  /// Of x86-64.
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
