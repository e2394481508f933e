// A row source written as text, for tests that feed an engine with rows.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind::test {

/// Each line has one row, "+offset: cfa=...", with ascending offsets from range.begin; a row holds up to the next one.
/// Empty lines are skipped. There is no row outside of the range and before the first row.
class TextRows final : public RowSource {
 public:
  /// Throws std::invalid_argument, with the line, if the text does not parse.
  TextRows(AddrRange range, std::string_view text, const Arch& arch);

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;

 private:
  struct Row {
    Addr from;
    FrameRow row;
  };

  AddrRange range_;
  ExpressionPool pool_;
  std::vector<Row> rows_;
};

}  // namespace jitunwind::test
