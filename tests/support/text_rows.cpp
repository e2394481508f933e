#include "tests/support/text_rows.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace jitunwind::test {

TextRows::TextRows(AddrRange range, std::string_view text, const Arch& arch) : range_(range) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    if (line.empty()) continue;
    const auto parsed = parse_row(line, arch, pool_);
    if (!parsed || !parsed->offset || (!rows_.empty() && range.begin + *parsed->offset <= rows_.back().from))
      throw std::invalid_argument(std::string(line));
    rows_.push_back({range.begin + *parsed->offset, parsed->row});
  }
}

Found TextRows::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  const Addr at = lookup.at.lookup();
  if (!range_.contains(at)) return false;
  const auto behind = std::upper_bound(rows_.begin(), rows_.end(), at, [](Addr a, const Row& r) { return a < r.from; });
  if (behind == rows_.begin()) return false;
  out = std::prev(behind)->row;
  out.range = {std::prev(behind)->from, behind == rows_.end() ? range_.end : behind->from};
  return true;
}

}  // namespace jitunwind::test
