// From which lines of sources a piece of code was made, as JITs tell it.
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

/// A place in a source.
struct SourceLine {
  std::string file{};  ///< any bytes; "": not told
  std::uint32_t line = 0;
};

/// From this offset on, up to that of another line, code is of that line.
struct ToldLine {
  std::uint64_t offset = 0;  ///< from the begin of the code
  std::uint32_t line = 0;    ///< 0: of none (DWARF 5, 6.2.2)
  std::string_view file{};
};

/// The lines of one piece of code. By offsets, since code may be moved. Allocates.
class SourceLines {
 public:
  /// What is told of one piece is cut at so many lines and files.
  static constexpr std::size_t k_most = std::size_t{1} << 16;
  static constexpr std::size_t k_most_files = 64;

  SourceLines() = default;
  /// In any order. Of several lines of one offset the last one counts.
  explicit SourceLines(std::span<const ToldLine> told);

  /// Nothing in front of the first line, and of code of no line.
  std::optional<SourceLine> find(std::uint64_t offset) const;
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
