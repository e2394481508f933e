#include "jitunwind/sdk/dialects/source_lines.h"

#include <algorithm>
#include <iterator>

#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {

SourceLines::SourceLines(std::span<const ToldLine> told) {
  std::uint32_t file = 0;
  for (const ToldLine& line : told.first(std::min(told.size(), k_most))) {
    const std::string_view name = line.file.substr(0, k_longest_told_name);
    if (file == files_.size() || files_[file] != name) {
      file = static_cast<std::uint32_t>(std::find(files_.begin(), files_.end(), name) - files_.begin());
      if (file == k_most_files) break;
      if (file == files_.size()) files_.emplace_back(name);
    }
    lines_.push_back({line.offset, line.line, file});
  }
  sort_by(lines_, &Line::offset);
}

std::optional<ToldLine> SourceLines::told_at(std::uint64_t offset) const noexcept {
  const auto behind = std::ranges::upper_bound(lines_, offset, {}, &Line::offset);
  if (behind == lines_.begin()) return std::nullopt;
  const Line& line = *std::prev(behind);
  return line.line == 0 ? std::nullopt : std::optional(ToldLine{line.offset, line.line, files_[line.file]});
}

}  // namespace jitunwind
