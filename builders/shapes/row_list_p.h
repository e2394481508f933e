// The rows of a shape, packed: a FrameRow has room for 40 rules and its own expressions, but most rows have a handful.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {

/// An immutable list.
class RowList {
 public:
  /// Memory of the rows' expressions, shared with the draft that gave the rows.
  using Pools = std::vector<std::shared_ptr<const ExpressionPool>>;

  RowList() noexcept = default;
  struct Placed {
    CodeOffset offset;
    const FrameRow* row;
  };
  RowList(const std::vector<Placed>& rows, Pools pools);

  std::size_t size() const noexcept { return rows_.size(); }
  bool empty() const noexcept { return rows_.empty(); }
  CodeOffset offset(std::size_t i) const noexcept { return rows_[i].offset; }
  /// Expressions point into the list.
  FrameRow row(std::size_t i) const noexcept;

  std::size_t bytes() const noexcept;
  std::uint64_t hash() const noexcept;
  /// Expressions compare by bytes.
  friend bool operator==(const RowList& a, const RowList& b) noexcept;

 private:
  struct Packed {
    CodeOffset offset;
    CfaRule cfa;
    std::uint32_t args_size;
    std::uint32_t entries_end;  // in entries_; a row's entries begin at the end of the row before
    RegNum ra;
    bool signal_frame;
    friend bool operator==(const Packed&, const Packed&) noexcept = default;
  };

  std::vector<Packed> rows_;
  std::vector<FrameRow::Entry> entries_;
  Pools pools_;
};

}  // namespace jitunwind
