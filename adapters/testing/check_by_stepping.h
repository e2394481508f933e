// A check of registered code: every instruction runs alone, and the caller by the description is compared with the real
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/builders/registration.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The result of a check.
struct SteppingReport {
  std::string failure;             ///< reason why the check is incomplete; empty: it is complete
  std::uint64_t activations = 0;   ///< number of entries into the procedures
  std::uint64_t by_entry_row = 0;  ///< number of these whose real values are those of the row at the entry
  std::uint64_t instructions = 0;  ///< compared as interrupted frames
  std::uint64_t calls = 0;         ///< compared as frames that wait for a callee
  std::uint64_t wrong = 0;         ///< differences in both
  std::vector<Addr> not_run;       ///< addresses of instructions that never ran and are unchecked
  std::string mismatches;          ///< the first ones, for people: instruction, row, expected and actual values

  /// True when all executed instructions were right, and at least one ran. not_run lists the others.
  explicit operator bool() const noexcept { return failure.empty() && wrong == 0 && instructions != 0; }
  /// The whole report, for people.
  std::string text() const;
};

/// Runs `run` in a forked child, one instruction at a time. These ranges must be registered. The caller by the
/// registered description is compared with the real one at each of their instructions: CFA, return address, and the
/// registers that the psABI preserves. The real values are recorded when a range is entered. Calls are compared as
/// waiting frames as well.
///
/// If a range is entered by a jump, its frame may have been built before: that of a trace, or of an on-stack
/// replacement. The real values are then those of the row at the entry, which is not checked itself, except when the
/// code returns. Such code may also end by a jump out of the ranges.
///
/// `run` calls the code, and returns 0 if its results are right. It may call anything and receive signals. No exception
/// and no longjmp may pass the ranges, because their departure would not be noticed. `run` executes in a copy of this
/// process that has the calling thread only. A million instructions take some ten seconds.
///
/// x86-64 only. Not signal-safe; one check at a time in a process. `failure` reports a child that cannot be traced, as
/// in sandboxes without ptrace(2); a result of `run` other than 0; a signal that kills it; a run longer than
/// `max_steps` instructions. It also reports a procedure that returns with a preserved register changed, which is a
/// fault of the code.
SteppingReport check_by_stepping(std::span<const AddrRange> code, const std::function<int()>& run,
                                 std::uint64_t max_steps = 4'000'000);
SteppingReport check_by_stepping(const Registration& procedure, const std::function<int()>& run,
                                 std::uint64_t max_steps = 4'000'000);

}  // namespace jitunwind
#pragma GCC visibility pop
