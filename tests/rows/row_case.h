// Reads .case files (README.md here) and makes region lists of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind::rows {

struct CaseRegion {
  std::int32_t insn_count = 0;
  std::vector<unw_dyn_op_t> ops;
  std::uint32_t allocated = 0;  ///< op_count; 0: exactly the given ones
  int again = -1;               ///< >= 0: next leads to this region of the case
};

/// The expected result of a lookup. `error` is unspecified if there is a row.
struct Expectation {
  std::uint64_t offset = 0;
  bool of_call = false;
  ErrorCode error = ErrorCode::unspecified;
  FrameRow row;
};

struct StaticCode {
  std::string name;
  AddrRange range{};
  std::vector<ParsedRow> rows;  ///< each at its offset
};

struct RowCase {
  std::string name;
  int line = 0;
  const Arch* arch = nullptr;
  AddrRange range{};  ///< a place of its own in the file
  std::uint32_t flags = 0;
  std::vector<CaseRegion> regions;
  std::vector<StaticCode> statics;
  std::vector<Expectation> expectations;
  std::set<std::string> findings;
  std::vector<std::uint64_t> call_ends;
  bool ends_without_return = false;
};

struct CaseFile {
  std::deque<RowCase> cases;
  ExpressionPool pool;
};

/// `file` is a path below tests/rows, or an absolute one. Throws std::runtime_error with file and line.
std::unique_ptr<CaseFile> load_cases(const std::string& path);
std::unique_ptr<CaseFile> parse_cases(std::string_view text, const std::string& file);

/// Parses the text that directive_text prints. Throws std::runtime_error.
unw_dyn_op_t parse_directive(std::string_view text, const Arch& arch);

/// The address of procedures without code: nothing is mapped there.
inline constexpr Addr k_code = 0x200000000000;

/// A descriptor with its region list; owns both.
class CaseProcedure {
 public:
  explicit CaseProcedure(const RowCase& c) : CaseProcedure(c.regions, c.range, c.flags) {}
  CaseProcedure(const std::vector<CaseRegion>& regions, AddrRange range, std::uint32_t flags = 0);
  const unw_dyn_info_t& info() const { return info_; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  unw_dyn_info_t info_{};
};

/// Returns "error E_NO_FP", or the row's text.
std::string outcome_text(const Status& status, const FrameRow& row, const Arch& arch);

}  // namespace jitunwind::rows
