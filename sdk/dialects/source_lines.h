// The source lines of a piece of code, as JITs report them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Bytes of a name that a JIT reports in any dialect. Longer names are cut.
inline constexpr std::size_t k_longest_told_name = 4096;

/// A line of a source file.
struct SourceLine {
  std::string file{};  ///< any bytes; "": not told
  std::uint32_t line = 0;
};

/// The code from this offset up to that of the next line is of this line.
struct ToldLine {
  std::uint64_t offset = 0;  ///< from the begin of the code
  std::uint32_t line = 0;    ///< 0: the code is of no line (DWARF 5, 6.2.2)
  std::string_view file{};
};

/// The lines of one piece of code, by offset, since code may be moved. Allocates.
class SourceLines {
 public:
  /// The most lines, and the most files, of one piece; further ones are ignored.
  static constexpr std::size_t k_most = std::size_t{1} << 16;
  static constexpr std::size_t k_most_files = 64;

  SourceLines() = default;
  /// The lines may be in any order. If several have one offset, the last one counts.
  explicit SourceLines(std::span<const ToldLine> told);

  /// Returns nothing in front of the first line, and for code of no line. The text is this object's.
  std::optional<ToldLine> told_at(std::uint64_t offset) const noexcept;
  std::optional<SourceLine> find(std::uint64_t offset) const {
    const auto line = told_at(offset);
    return line ? std::optional(SourceLine{std::string(line->file), line->line}) : std::nullopt;
  }
  bool empty() const noexcept { return lines_.empty(); }

 private:
  struct Line {
    std::uint64_t offset = 0;
    std::uint32_t line = 0;
    std::uint32_t file = 0;
  };
  std::vector<Line> lines_;         // by offset
  std::vector<std::string> files_;  // mostly one
};

}  // namespace jitunwind
#pragma GCC visibility pop
