// Code that has a description: of a target, the FDEs of its modules and the procedures of its JITs; of a jitdump, its
// records with call frame information. An ELF file is a target without threads, whose segments are at the addresses
// that it was linked for, as the file has them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "jitunwind/sdk/target.h"
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

}  // namespace jitunwind::jitstack
