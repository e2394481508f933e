// The rows of a procedure one after the other.
#pragma once

#include <cstdint>
#include <memory>

#include "jitunwind/builders/description.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What Description::row() says of a procedure of `bytes`, asked in ascending order: all answers together take what the
/// last one takes alone. The description must outlive it. Allocates; one thread at a time.
class DescribedRows {
 public:
  DescribedRows(const Description& description, std::uint64_t bytes);
  ~DescribedRows();
  DescribedRows(const DescribedRows&) = delete;
  DescribedRows& operator=(const DescribedRows&) = delete;

  /// Precondition: `offset` is not smaller than the one before. Errors as Description::row(); behind one of a
  /// description by directives all that follow have one, too.
  Result<FrameRow> row(std::uint64_t offset) noexcept;
  /// The same in `out`, which is anything behind an error.
  Status row(std::uint64_t offset, FrameRow& out) noexcept;

 private:
  struct Run;
  const Description& description_;
  const std::uint64_t bytes_;
  std::unique_ptr<Run> run_;  // null: given as rows
};

}  // namespace jitunwind
#pragma GCC visibility pop
