// Input: a byte, bit 0 the CPU; then the text of a row.
#include <string>

#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Arch& arch = *all_arches()[data[0] % all_arches().size()];
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  ExpressionPool pool;
  const auto row = parse_row(text, arch, pool);
  if (!row) {
    fuzz::check(row.error().at <= text.size() && *row.error().what != 0, "an error says where and what");
    return 0;
  }
  const std::string printed = row->offset ? to_text(*row->offset, row->row, arch) : to_text(row->row, arch);
  const auto again = parse_row(printed, arch, pool);
  fuzz::check(again.has_value(), "what is printed is read");
  fuzz::check(again->offset == row->offset && again->row == row->row, "what is printed is what was read");
  FrameRow copy = row->row;
  if (copy.own_expressions()) {
    const FrameRow second = copy;
    fuzz::check(second == row->row, "a copy is the same row");
  }
  return 0;
}
