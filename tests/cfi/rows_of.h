// Reads the rows of an FDE as text, one a line, the way tests write them; an error is a line of its own.
#pragma once

#include <string>

#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {

inline std::string error_line(const Error& error) {
  return std::string("error ") + error_name(error.code) + ": " + error.what;
}

/// "+0: cfa=rsp+8 ra=[cfa-8]\n+1: ..." and as the last line, if so, "error code: what". Offsets count from the code.
inline std::string rows_of(const Fde& fde, const CfiContext& context) {
  std::string text;
  FrameRow row;
  row.range.end = fde.range.begin;
  FdeRows rows(fde, context, row);
  Addr expected_begin = fde.range.begin;
  for (;;) {
    const auto more = rows.next_behind(row.range.end);
    if (!more) return text + (text.empty() ? "" : "\n") + error_line(more.error());
    if (!*more) break;
    if (!text.empty()) text += '\n';
    text += to_text(row.range.begin - fde.range.begin, row, context.arch);
    if (row.range.begin != expected_begin || row.range.empty()) text += " (range is wrong)";
    expected_begin = row.range.end;
  }
  if (expected_begin != fde.range.end) text += "\n(rows end too early)";
  return text;
}

/// Returns the rows of the FDE at `at` of a section.
inline std::string rows_of(const CfiSection& section, Addr at, const CfiContext& context) {
  SectionView view(section.section());
  const auto fde = read_fde(view, context, at);
  return fde ? rows_of(*fde, context) : error_line(fde.error());
}

}  // namespace jitunwind::test
