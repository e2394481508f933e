// The rows of a procedure in ascending order of their offsets.
#pragma once

#include <cstdint>
#include <memory>

#include "jitunwind/builders/description.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Gives the rows of Description::row() for a procedure of `bytes`, in ascending order. All lookups together cost as
/// much as the last one costs alone. The description must outlive the object. Allocates; one thread at a time.
class DescribedRows {
 public:
  DescribedRows(const Description& description, std::uint64_t bytes);
  ~DescribedRows();
  DescribedRows(const DescribedRows&) = delete;
  DescribedRows& operator=(const DescribedRows&) = delete;

  /// Precondition: `offset` is not smaller than in the call before. Errors as Description::row(); once a description by
  /// directives has failed, every later call fails, too.
  Result<FrameRow> row(std::uint64_t offset) noexcept;
  /// Writes the row to `out`, whose value is unspecified after an error.
  Status row(std::uint64_t offset, FrameRow& out) noexcept;

 private:
  struct Run;
  const Description& description_;
  const std::uint64_t bytes_;
  std::unique_ptr<Run> run_;  // null: the description has rows
};

}  // namespace jitunwind
#pragma GCC visibility pop
