// Writes what a check has found, as text or as JSON: docs/jitstack.md "Checking".
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"
#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind::jitstack {

/// Code with one description. It is valid until CodeVisitor::end_parts().
struct DescribedCode {
  AddrRange code{};
  std::optional<Fde> fde{};             ///< none: DescribedSource::find_row() has its rows
  const CfiContext* context = nullptr;  ///< of the FDE
};

class CodeVisitor {
 public:
  /// All code that follows is of this module, whose path is "" for code made at run time. `size` is that of what will
  /// be visited, in the unit of `done`.
  virtual void begin_module(const std::string& path, std::uint64_t size) = 0;
  virtual void visit(const DescribedCode& code, std::uint64_t done) = 0;
  /// All code since the last call, or since the module began, is described together: parts of it may jump into others.
  virtual void end_parts() = 0;
  /// An entry at `at` that cannot be read; what: static.
  virtual void visit_broken(Addr at, const char* what) = 0;

 protected:
  ~CodeVisitor() = default;
};

/// A target or file that can be checked. Before end_parts() it answers for the code that was visited.
class DescribedSource {
 public:
  virtual ~DescribedSource() = default;
  virtual const Arch& arch() const = 0;
  virtual const Memory& memory() const = 0;
  virtual Found find_row(Addr at, FrameRow& out) = 0;
  /// "": it has none.
  virtual std::string name_of(Addr at) = 0;
  virtual void visit(CodeVisitor& visitor) = 0;
};

/// Visits the code of all modules by their .eh_frame, or else their .debug_frame, and that of Target::jit_code().
std::unique_ptr<DescribedSource> source_of(Target target);

/// Opens an ELF file as a target. Errors: no_such_file: it cannot be read, or it is no ELF file that could be loaded;
/// other_architecture.
Result<Target, TargetError> open_elf_file(const std::string& path);

/// Opens a jitdump, whose records have the bytes of the code. Errors: no_such_file: it cannot be read, or it is none;
/// other_architecture.
Result<std::unique_ptr<DescribedSource>, TargetError> open_jitdump(const std::string& path);

/// A file of this name is read as a jitdump, all others as ELF files.
Result<std::unique_ptr<DescribedSource>, TargetError> open_file(const std::string& path);

/// The error of a file that cannot be checked; `why`: "is not linked".
TargetError unfit(const std::string& path, const std::string& why);

/// Calls visit(range) for each procedure of a range, in which find(at) returns the one at an address. Between these is
/// padding, which no description covers. False: there are more than `misses` addresses without a description.
template <class Find, class Visit>
bool for_each_procedure(const AddrRange& range, std::uint64_t& misses, Find find, Visit visit) {
  for (Addr at = range.begin; at < range.end;) {
    const AddrRange procedure = find(at);
    if (!procedure.contains(at)) {
      if (misses-- == 0) return false;
      ++at;
      continue;
    }
    visit(procedure);
    at = procedure.end;
  }
  return true;
}

/// The code's own word in a dispute: the instructions of one path are executed by the CPU, and a row is applied to what
/// they leave.
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

/// One of the three is checked.
struct CheckedTarget {
  std::string file{};
  std::string core{};
  pid_t process = 0;
};

/// A finding, and what is said of it besides.
struct SeenFinding {
  CheckFinding finding{};
  std::string instruction{};       ///< bytes of the instruction that made the difference, in hex; "": none did
  std::optional<ForcedRun> run{};  ///< of what disagrees, if that was asked for
};

/// Code with findings. Its name is the target's own, thus hostile.
struct SeenProcedure {
  std::string name{};  ///< demangled; "": none
  AddrRange code{};    ///< that the description covers
  Verdict verdict = Verdict::disagrees;
  std::vector<SeenFinding> findings{};
  bool has_more_findings = false;
};

/// The results of a module.
struct Tally {
  std::uint64_t agree = 0;
  std::uint64_t disagree = 0;
  std::uint64_t undecided = 0;
  /// Counts of these by their first reason.
  std::array<std::uint64_t, k_cannot_tell_reasons> reasons{};
  std::uint64_t assumed = 0;    ///< CheckReport::assumed of all
  std::uint64_t broken = 0;     ///< of these, entries that cannot be read
  std::uint64_t run_right = 0;  ///< of these, what the check called wrong and the run right

  std::uint64_t all() const noexcept { return agree + disagree + undecided; }
};

/// Receives each target, followed by its modules, and for each of these the code with findings.
class CheckOutput {
 public:
  virtual ~CheckOutput() = default;
  virtual void begin_target(const CheckedTarget& target, const Arch& arch) = 0;
  /// "": code made at run time.
  virtual void begin_module(const std::string& path) = 0;
  virtual void procedure(const SeenProcedure& procedure) = 0;
  virtual void end_module(const Tally& tally) = 0;
  virtual void failed(const CheckedTarget& target, const TargetError& error) = 0;
  /// Returns false if not everything could be written.
  virtual bool end() = 0;
};

/// `arch` of begin_target() must live until the next target begins.
std::unique_ptr<CheckOutput> check_text_output(const Colours& colours, bool shows_all);
std::unique_ptr<CheckOutput> check_json_output();

/// Calls visit(text, count) for each reason of the undecided that there is.
template <class Visit>
void for_each_reason(const Tally& tally, Visit visit) {
  for (std::size_t i = 0; i < tally.reasons.size(); ++i)
    if (tally.reasons[i] != 0) visit(reason_text(static_cast<CannotTell>(i)), tally.reasons[i]);
  if (tally.broken != 0) visit("entry that cannot be read", tally.broken);
  if (tally.run_right != 0) visit("the run agrees", tally.run_right);
}

}  // namespace jitunwind::jitstack
