// A row source written as text: what tests feed an engine with when the rows themselves are the given.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind::test {

/// One row a line, "+offset: cfa=...", offsets from range.begin and ascending; a row holds up to the next. Lines that
/// are empty are skipped. Addresses outside of the range and before the first row are not its business.
class TextRows final : public RowSource {
 public:
  /// Throws std::invalid_argument, with the line, when the text does not parse.
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
