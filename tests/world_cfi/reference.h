// Rows of a file as other programs read them: readelf --debug-dump=frames-interp and llvm-dwarfdump --eh-frame, parsed
// into cells that both can express.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::world {

enum class Tool { readelf, dwarfdump };
const char* tool_name(Tool tool);

/// A reference's rule for one register, or for the CFA (reg + offset, or an expression).
struct Cell {
  enum class Kind {
    none,  ///< no rule
    lost,  ///< undefined; readelf prints the same letter for both
    same,
    at_cfa,
    is_cfa,
    reg,  ///< + offset, in the CFA
    at_expression,
    is_expression,
    not_understood,
  };
  Kind kind = Kind::none;
  RegNum reg = 0;
  std::int64_t offset = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};
std::string to_text(const Cell& cell);

/// The column of the return address, which readelf calls "ra".
inline constexpr RegNum k_ra_column = k_no_reg;

struct ReferenceRow {
  struct Rule {
    RegNum reg;
    Cell cell;
  };
  Addr at = 0;
  Cell cfa;
  std::vector<Rule> rules;
};

struct ReferenceFde {
  std::string section;  ///< ".eh_frame"
  std::uint64_t offset = 0;
  AddrRange range{};
  std::vector<ReferenceRow> rows;
  // Only llvm-dwarfdump gives these:
  Addr personality = 0;  ///< 0: none; where the pointer to it is when it is indirect
  Addr lsda = 0;
  bool restores_state = false;  ///< has a DW_CFA_restore_state
};

/// Runs the tool over a file and returns its FDEs one by one. Throws std::runtime_error if the tool cannot be run.
class Reference {
 public:
  Reference(Tool tool, const std::string& file, const Arch& arch);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// Returns false at the end of the output.
  bool next(ReferenceFde& out);

 private:
  bool read_line();
  bool read_header(ReferenceFde& out);
  void read_line_of_fde(ReferenceFde& out);
  void read_columns();
  ReferenceRow readelf_row() const;
  ReferenceRow dwarfdump_row() const;

  Cell reg_cell(std::string_view text) const;
  Cell readelf_cfa(std::string_view word) const;
  Cell readelf_cell(std::string_view word) const;
  Cell dwarfdump_cfa(std::string_view text) const;
  Cell dwarfdump_cell(std::string_view text) const;

  Tool tool_;
  const Arch& arch_;
  std::FILE* pipe_ = nullptr;
  int pid_ = -1;
  char* buffer_ = nullptr;
  std::size_t capacity_ = 0;
  std::string_view line_;
  bool line_waits_ = false;
  std::string section_;
  std::vector<RegNum> columns_;
  std::uint64_t cie_ = 0;                        // the entry being read, when it is a CIE
  std::map<std::uint64_t, Addr> personalities_;  // by CIE
};

/// Returns the DWARF number of a register by its name in binutils and LLVM for that CPU; k_no_reg if it is unknown.
RegNum reg_by_name(std::string_view name, const Arch& arch);

}  // namespace jitunwind::world
