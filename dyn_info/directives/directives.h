// Conversion of directives to rows, and the check of descriptions. Semantics: docs/directives.md. One implementation
// serves every CPU and local and remote region lists.
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

/// The code that is described.
inline AddrRange code_of(const unw_dyn_info_t& info) noexcept { return {info.start_ip, info.end_ip}; }

/// One finding of validate(): an E_ or W_ code of docs/directives.md "Validation", and its place.
struct Finding {
  ErrorCode code = ErrorCode::unspecified;
  int region = -1;           ///< index in the list, -1: the procedure as a whole
  int directive = -1;        ///< index in the region, -1: the region as a whole
  std::int64_t offset = -1;  ///< code offset in bytes at which the finding applies, -1: none
  std::string message;       ///< names region, directive, offset and reason

  const std::string& text() const noexcept { return message; }
};

/// The name of a code: "E_NO_FP" for e_no_fp. Allocates.
std::string finding_name(ErrorCode code);
/// A warning is a W_ code: the description may be as its author wants it.
bool is_warning(ErrorCode code) noexcept;

/// The text "SPILL_SP_REL rbx,-8 @4" (when in hex; omitted if negative), registers by their names in rows. Allocates.
std::string directive_text(const unw_dyn_op_t& op, const Arch& arch);

/// Facts that the author of the code knows beyond the directives.
struct CodeFacts {
  std::span<const std::uint64_t> call_ends{};  ///< offsets of the instructions after calls
  bool ends_without_return = false;            ///< the last instruction is a call or jump that does not return here
};

/// All findings, W_ codes included; empty: there are none. If a row at some offset ends in an error, the error's code
/// is among the findings. Allocates. Reads only local region lists; table formats are checked for range, format and
/// flags only.
std::vector<Finding> validate(const unw_dyn_info_t& info, const Arch& arch, const CodeFacts& facts = {});

/// The row of a DYNAMIC procedure at `at`, by the after-call rule. `lookup` serves ALIAS; if it is null, ALIAS is
/// no_info. Errors: e_range if the range is bad or `at` is outside of it; the codes of "Validation" with Error::at the
/// code offset in bytes. Signal-safe; no allocation.
Status directive_row(const unw_dyn_info_t& info, const Arch& arch, CodeAddress at, Lookup* lookup,
                     FrameRow& out) noexcept;

/// The row at lookup.at of a procedure whose descriptor is in host memory, with regions and the pairs of format TABLE.
/// The pairs of other tables, FDEs and CIEs are in lookup.space's memory. ALIAS is looked up in lookup.space. False:
/// its table has no FDE for the address. Signal-safe if the memory is; no allocation.
Found described_row(const unw_dyn_info_t& info, Lookup& lookup, FrameRow& out) noexcept;

/// The procedure information for the same arguments.
Found described_procedure(const unw_dyn_info_t& info, Lookup& lookup, ProcedureInfo& out) noexcept;

/// The limit for ALIAS that leads to code which is described by ALIAS.
inline constexpr unsigned k_max_alias_depth = 8;

/// Language-specific data after the STOP of an empty first region (docs/directives.md "Language-specific data").
struct LsdaExtension {
  Addr lsda = 0;              ///< 0: none
  Addr landing_pad_base = 0;  ///< 0: none given, pads are relative to the procedure's start
};
inline constexpr int k_lsda_tag = 0x4c;
inline constexpr int k_landing_pad_base_tag = 0x4d;
inline constexpr int k_lsda_reg = 0x5344;
inline constexpr std::int32_t k_lsda_when = 0x4c534441;
/// The extension of a DYNAMIC procedure of this process. Signal-safe.
LsdaExtension lsda_extension(const unw_dyn_info_t& info) noexcept;

/// The registered procedures of this process as a source of rows, procedure information and names. Signal-safe.
const RowSource& dyn_row_source() noexcept;
const NameSource& dyn_name_source() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
