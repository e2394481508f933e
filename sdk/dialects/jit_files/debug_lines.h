// Lines of sources by DWARF's line number programs, .debug_line (DWARF 5, 6.2), as files have them that JITs make for
// debuggers. Not by libdw, which reads those of files on disk (sdk/uwx/names): a library that listens is preloaded into
// programs which would load libdw and the four libraries that it needs for the first piece of code with lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The sections, linked: addresses are those of the code, offsets those within the sections.
struct DebugLineSections {
  std::span<const std::byte> lines{};         ///< .debug_line
  std::span<const std::byte> line_strings{};  ///< .debug_line_str
  std::span<const std::byte> strings{};       ///< .debug_str
  bool big_endian = false;
};

/// What programs of the versions 2 to 5 say. One that is broken counts up to there, and so do those behind it as far as
/// it says where they begin. Immutable once made.
class DebugLines {
 public:
  /// What is told is cut at so many rows, and names at 4 KiB.
  static constexpr std::size_t k_most = std::size_t{1} << 20;

  DebugLines() = default;
  /// O(bytes), but for sorting; throws std::bad_alloc.
  explicit DebugLines(const DebugLineSections& sections);

  std::optional<SourceLine> find(Addr at) const;
  /// Of one piece of code.
  SourceLines within(const AddrRange& code) const;
  bool empty() const noexcept { return rows_.empty(); }

  /// Code from `at` up to the next row.
  struct Row {
    Addr at = 0;
    std::uint32_t line = 0;
    std::uint32_t file = k_none;  ///< which of the names; k_none: the code ends there
  };
  static constexpr std::uint32_t k_none = ~std::uint32_t{0};

 private:
  std::vector<Row> rows_;  // ascending
  std::vector<std::string> files_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
