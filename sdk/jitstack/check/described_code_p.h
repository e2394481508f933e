// The code of a target that has a description: the FDEs of its modules, and the procedures of its JITs. An ELF file is
// a target without threads, whose segments are at the addresses that it was linked for, as the file has them.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind::jitstack {

/// Code with one description. It is valid during the visit.
struct DescribedCode {
  AddrRange code{};
  const Fde* fde = nullptr;             ///< null: the sources of the target have its rows
  const CfiContext* context = nullptr;  ///< of the FDE
};

class CodeVisitor {
 public:
  /// All code that follows is of this module, whose path is "" for code made at run time. `size` is that of what will
  /// be visited, in the unit of `done`.
  virtual void begin_module(const std::string& path, std::uint64_t size) = 0;
  virtual void visit(const DescribedCode& code, std::uint64_t done) = 0;
  /// An entry at `at` that cannot be read; what: static.
  virtual void visit_broken(Addr at, const char* what) = 0;

 protected:
  ~CodeVisitor() = default;
};

/// Opens an ELF file as a target. Errors: no_such_file: it cannot be read, or it is no ELF file that could be loaded;
/// other_architecture.
Result<Target, TargetError> open_elf_file(const std::string& path);

/// Visits the code of all modules by their .eh_frame, or else their .debug_frame, and that of Target::jit_code().
void visit_described_code(const Target& target, CodeVisitor& visitor);

}  // namespace jitunwind::jitstack
