// The code's own word in a dispute: the instructions of one path are executed by the CPU, and a row is applied to what
// they leave.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::jitstack {

struct ForcedRun {
  enum class Result : std::uint8_t {
    not_run,  ///< see `why`
    wrong,    ///< the row leads to another caller
    right,    ///< the row leads to the caller
  };
  Result result = Result::not_run;
  std::string why{};  ///< why it was not run, or what the row gets wrong
};

/// Executes a path from the begin of `code` over the instruction at `cause`, if there is one, to `at` in a child,
/// instruction by instruction, and applies the row there. `bytes` are all of the code. Control is forced to the path:
/// each instruction is executed, wherever it leads; calls are passed over, as if they had returned and changed what
/// calls may change; so is what faults, since arguments and data are not there. System calls fail. Nothing but a copy
/// of the instructions is entered. Only code of this machine's CPU is run. Allocates; forks.
ForcedRun run_to(const Arch& arch, const AddrRange& code, std::span<const std::byte> bytes, std::optional<Addr> cause,
                 Addr at, const FrameRow& row);

}  // namespace jitunwind::jitstack
