// Directives -> rows, and the check of descriptions. Semantics: docs/directives.md. One implementation for every CPU
// and for local and remote region lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// One finding of validate(): an E_ or W_ code of docs/directives.md "Validation", and where.
struct Finding {
  ErrorCode code = ErrorCode::unspecified;
  int region = -1;           ///< index in the list, -1: the procedure as a whole
  int directive = -1;        ///< index in the region, -1: the region as a whole
  std::int64_t offset = -1;  ///< code offset in bytes the finding holds at, -1: none
  std::string message;       ///< says region, directive, offset and reason

  const std::string& text() const noexcept { return message; }
};

/// "E_NO_FP" of e_no_fp. Allocates.
std::string finding_name(ErrorCode code);
/// W_ codes: the description may be as its author wants it.
bool is_warning(ErrorCode code) noexcept;

/// "SPILL_SP_REL rbx,-8 @4" (when in hex; left out where negative), registers by their names in rows. Allocates.
std::string directive_text(const unw_dyn_op_t& op, const Arch& arch);

/// What whoever wrote the code knows beyond the directives.
struct CodeFacts {
  std::span<const std::uint64_t> call_ends{};  ///< offsets of the instructions behind calls
  bool ends_without_return = false;            ///< the last instruction is a call or jump that does not come back here
};

/// All findings, W_ codes included; empty: nothing to complain about. Where a row at some offset ends in an error, the
/// error's code is among the findings. Allocates. Reads only local region lists; table formats are checked for range,
/// format and flags only.
std::vector<Finding> validate(const unw_dyn_info_t& info, const Arch& arch, const CodeFacts& facts = {});

/// The row of a DYNAMIC procedure at `at`, by the after-call rule. `lookup` serves ALIAS; without one (null) ALIAS is
/// no_info. Errors: e_range when the range is bad or `at` is outside of it; the codes of "Validation" with Error::at
/// the code offset in bytes. Signal-safe; no allocation.
Status directive_row(const unw_dyn_info_t& info, const Arch& arch, CodeAddress at, Lookup* lookup,
                     FrameRow& out) noexcept;

/// The row at lookup.at of a procedure whose descriptor is in host memory, with regions and the pairs of format TABLE;
/// the pairs of other tables, FDEs and CIEs are in lookup.space's memory. ALIAS is looked up in lookup.space. False:
/// its table has no FDE for the address. Signal-safe where the memory is; no allocation.
Found described_row(const unw_dyn_info_t& info, Lookup& lookup, FrameRow& out) noexcept;

/// The same of procedure information.
Found described_procedure(const unw_dyn_info_t& info, Lookup& lookup, ProcedureInfo& out) noexcept;

/// ALIAS may lead to code that is described by ALIAS, so often at most.
inline constexpr unsigned k_max_alias_depth = 8;

/// Language-specific data behind the STOP of an empty first region (docs/directives.md "Language-specific data").
struct LsdaExtension {
  Addr lsda = 0;              ///< 0: none
  Addr landing_pad_base = 0;  ///< 0: none given, pads are relative to the procedure's start
};
inline constexpr int k_lsda_tag = 0x4c;
inline constexpr int k_landing_pad_base_tag = 0x4d;
inline constexpr int k_lsda_reg = 0x5344;
inline constexpr std::int32_t k_lsda_when = 0x4c534441;
/// Of a DYNAMIC procedure of this process. Signal-safe.
LsdaExtension lsda_extension(const unw_dyn_info_t& info) noexcept;

/// The registered procedures of this process as a source of rows, procedure information and names. Signal-safe.
const RowSource& dyn_row_source() noexcept;
const NameSource& dyn_name_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
