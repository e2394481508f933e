// Lines of sources by DWARF's line number programs, .debug_line (DWARF 5, 6.2), as files have them that JITs make for
// debuggers. libdw reads those of files on disk (sdk/uwx/names), and could read these, without a compilation unit
// (dwarf_next_lines). Why it does not:
//   - An engine may free its file at any moment, so lines are read when the file is heard, and never at a question: any
//     program with a preloaded library and a JIT that tells lines would load libdw, asked or not. dlopen() of it and of
//     the four libraries that it needs takes the dynamic linker's lock in a thread that the program does not know, and
//     leaves 25 mappings and 40 page faults (elfutils 0.188, 0.4 ms).
//   - Machines where the library is preloaded, or jitstack copied to, need not have libdw: they would have no lines.
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
