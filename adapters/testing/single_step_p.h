// A single-step check: real code runs in a forked child one instruction at a time, and the caller that the engine
// computes is compared with the state at the procedure's entry.
//
//   truth, recorded when an activation begins:  CFA = sp + entry_cfa;  return address, preserved registers: as they are
//   at every boundary inside the judged code:       cursor at the interrupted pc, one step, all of the truth compared
//   at every call that the judged code makes:       the frame is compared as the callee's first instruction sees it,
//                                                   by the after-call rule and with scratch registers unknown
//
// An activation lasts until control is back at its return address with SP at or above its CFA: `ret n` and tail calls
// end it like a plain `ret`. Its end is checked, too: preserved registers must have their old values (otherwise the
// code or the truth is wrong, not the rows).
//
// Code that is jumped to may have a frame that was built before: a trace, code of an on-stack replacement. Its row at
// the entry is then the truth for all of its other rows, and it also ends by a jump to code that is not judged.
//
// The child is a fork: code, modules and registrations that exist before single_step() are the same in both processes.
// Row sources of this process therefore apply, and only registers and memory are read from the child.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/registers.h"

namespace jitunwind::stepping {

inline constexpr std::size_t k_max_instruction_bytes = 15;

struct MachineInstruction {
  enum class Flow : std::uint8_t { next, call, ret, jump };
  std::size_t length = 0;
  Flow flow = Flow::next;  ///< jump includes conditional ones
};

/// None when the bytes are no instruction.
std::optional<MachineInstruction> decode_instruction(std::span<const std::byte> bytes);

/// "48 83 ec 28  sub rsp, 0x28".
std::string instruction_text(std::span<const std::byte> bytes, Addr at);

/// The begin of each instruction of [code, code + size), decoded in sequence from the first byte up to the first byte
/// that is no instruction. The code is in host memory.
std::vector<Addr> instruction_starts(const void* code, std::size_t size);

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

/// "0x1f".
std::string hex(std::uint64_t value);

/// Code whose every instruction is judged. Calls may enter at any of its addresses.
struct SteppedCode {
  std::string name;
  AddrRange range;
};

/// One set of row sources to judge; several sets judge the same run.
struct SingleStepJudge {
  std::string name;
  std::vector<const RowSource*> sources;
};

struct SingleStepOptions {
  const ModuleFinder* modules = nullptr;  ///< null: this process has none
  /// Registers that are compared beside CFA and return address. An empty list stands for the preserved general
  /// registers of the psABI. Vector registers are compared by the rule of the row, 16 bytes.
  std::vector<RegNum> preserved;
  /// Calls without a callee: they push the pc, for code that reads its own.
  std::set<Addr> pc_pushes;
  std::uint64_t max_steps = 4'000'000;  ///< steps of the child, judged code or not
  std::size_t max_texts = 5;            ///< number of mismatches described; all are counted
};

struct SingleStepReport {
  std::uint64_t instructions = 0;  ///< boundaries compared
  std::uint64_t after_calls = 0;   ///< frames compared by the after-call rule
  std::uint64_t mismatches = 0;    ///< boundaries and frames with at least one wrong or missing value
  std::vector<std::string> texts;  ///< instruction, row, expected and actual
  std::set<Addr> wrong_at;         ///< pcs of the mismatches
};

struct SingleStepRun {
  std::string failure;             ///< empty: the child ran to its end, returned 0 and kept its preserved registers
  std::uint64_t steps = 0;         ///< instructions the child executed
  std::uint64_t activations = 0;   ///< entries into judged code
  std::uint64_t built_before = 0;  ///< number of these with another frame than that of a call
  std::set<Addr> visited;          ///< boundaries of judged code
  std::vector<SingleStepReport> reports;  ///< one per judge

  /// True without a failure, with at least one comparison, and without a mismatch.
  bool ok() const;
  /// Figures, failure and mismatches, for people.
  std::string text() const;
  /// Instructions of host code [begin, begin + size) that never ran.
  std::vector<Addr> missed(const void* begin, std::size_t size) const;
};

/// `body` runs in the child and returns 0 if its results are right. Throws std::runtime_error when no child can be
/// traced. The host must be x86-64.
SingleStepRun single_step(std::span<const SteppedCode> code, const std::function<int()>& body,
                          std::span<const SingleStepJudge> judges, const SingleStepOptions& options = {});

}  // namespace jitunwind::stepping
