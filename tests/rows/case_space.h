// The cases of a file as one address space: each procedure and each piece of static code at its place.
#pragma once

#include <deque>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "tests/rows/row_case.h"

namespace jitunwind::rows {

class CaseSpace final : public RowSource {
 public:
  CaseSpace(const CaseFile& file, const Arch& arch);

  /// Finds the row at an address, by its directives or its static code.
  Status find(CodeAddress at, FrameRow& out) const;
  const CaseProcedure& procedure(const RowCase& c) const;

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;

 private:
  const CaseFile& file_;
  std::deque<CaseProcedure> procedures_;  // of the file's cases, in their order
  NoModules modules_;
  LocalMemory memory_;
  const RowSource* const sources_[1] = {this};
  AddressSpace space_;
};

/// Checks one case: every expected row and call, and the findings. Failures name the case and its line.
void expect_case(const RowCase& c, const CaseSpace& space, const std::string& file);
/// Checks all cases of a file below tests/rows; there must be at least `least`.
void expect_cases(const std::string& file, std::size_t least);

}  // namespace jitunwind::rows
