// Source lines by DWARF's line number programs, .debug_line (DWARF 5, 6.2), in the files that JITs make for debuggers.
// libdw reads those of files on disk (sdk/uwx/names), and could read these without a compilation unit
// (dwarf_next_lines). It is not used here for these reasons:
//   - An engine may free its file at any moment, so lines must be read when the file is reported. Every program with a
//     preloaded library and a JIT that reports lines would therefore load libdw, even if nobody asks for a line.
//     dlopen() of it and of the four libraries that it needs takes the dynamic linker's lock in a thread that the
//     program does not know, and leaves 25 mappings and 40 page faults (elfutils 0.188, 0.4 ms).
//   - Machines to which jitstack or the preloaded library is copied may lack libdw: they would have no lines.
//   - Files that are not linked must be linked first in any case: libdw leaves that to libdwfl, and gives wrong names.
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

/// The linked sections: addresses are those of the code, offsets those within the sections.
struct DebugLineSections {
  std::span<const std::byte> lines{};         ///< .debug_line
  std::span<const std::byte> line_strings{};  ///< .debug_line_str
  std::span<const std::byte> strings{};       ///< .debug_str
  bool big_endian = false;
};

/// The rows of line number programs of the versions 2 to 5. A broken program counts up to its error. Programs behind it
/// count as far as its header says where they begin. Immutable once made.
class DebugLines {
 public:
  /// The largest number of rows; further rows are ignored. Names are cut at 4 KiB, and all of them together have 32
  /// times the bytes of .debug_line; rows of further files are ignored.
  static constexpr std::size_t k_most = std::size_t{1} << 20;

  DebugLines() = default;
  /// O(bytes), except for sorting; throws std::bad_alloc.
  explicit DebugLines(const DebugLineSections& sections);

  std::optional<SourceLine> find(Addr at) const;
  /// Returns the lines of one piece of code.
  SourceLines within(const AddrRange& code) const;
  bool empty() const noexcept { return rows_.empty(); }

  /// Applies to the code from `at` up to the next row.
  struct Row {
    Addr at = 0;
    std::uint32_t line = 0;
    std::uint32_t file = k_none;  ///< index of its name; k_none: the code ends there
  };
  static constexpr std::uint32_t k_none = ~std::uint32_t{0};

 private:
  std::vector<Row> rows_;  // ascending
  std::vector<std::string> files_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
