// Every instruction of registered code run one at a time, and what its description says compared with what is true.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/builders/registration.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What came of it.
struct SteppingReport {
  std::string failure;             ///< why it could not be judged to the end; empty: it could
  std::uint64_t activations = 0;   ///< of the procedures, how often they were entered
  std::uint64_t instructions = 0;  ///< compared where they were interrupted
  std::uint64_t calls = 0;         ///< compared as a frame that waits for its callee
  std::uint64_t wrong = 0;         ///< of both
  std::vector<Addr> not_run;       ///< instructions that never were, by address: nothing is known of them
  std::string mismatches;          ///< the first ones: instruction, row, what was expected, what it says. For people

  /// All that ran was right, and something did. See not_run for what did not.
  explicit operator bool() const noexcept { return failure.empty() && wrong == 0 && instructions != 0; }
  /// All of it, for people.
  std::string text() const;
};

/// Runs `run` in a forked child, one instruction at a time, and at every instruction of these ranges, which must be
/// registered, compares the caller that the registered description leads to with the truth, recorded when the range was
/// entered: CFA, return address, and the registers that the psABI says are preserved. At calls the frame that waits is
/// compared as well.
///
/// `run` calls the code, and returns 0 where it computed what it should. It may call anything and get signals; but no
/// exception and no longjmp may pass the ranges, which nobody would see leave. It runs in a copy of this process that
/// has the calling thread alone. A million instructions take some ten seconds.
///
/// x86-64 alone. Not signal-safe; one at a time in a process. `failure` says it where no child can be traced, as in
/// sandboxes without ptrace(2), where `run` does not return 0, a signal kills it, it is not done after `max_steps`
/// instructions, or a procedure returns with a preserved register changed, which is a fault of the code.
SteppingReport check_by_stepping(std::span<const AddrRange> code, const std::function<int()>& run,
                                 std::uint64_t max_steps = 4'000'000);
SteppingReport check_by_stepping(const Registration& procedure, const std::function<int()>& run,
                                 std::uint64_t max_steps = 4'000'000);

}  // namespace jitunwind
#pragma GCC visibility pop
