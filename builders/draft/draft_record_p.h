// The recorded calls of a ProcedureDraft, as plain data for its build().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/builders/draft/procedure_draft.h"
#include "jitunwind/builders/draft/row_pool_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {

/// One instruction as the caller gave it; its text is "push({0, 1}, rbx)".
struct SaidInstruction {
  Idiom idiom;
  Instruction at;
  [[gnu::cold]] std::string text(const Arch& arch) const;
};

struct ProcedureDraft::Record {
  Record(const Arch& cpu, std::string_view procedure) : arch(&cpu), name(procedure) {}

  /// A directive and its place: an instruction, or a given `when` in its region.
  struct Placed {
    DraftDirective directive;
    std::optional<Instruction> at;
    std::int32_t when = 0;
    std::optional<unw_dyn_op_t> raw;
    bool automatic_label = false;  // value is the number of the remember()
    std::uint32_t said = 0;        // index in `said` + 1; 0: a directive
  };
  struct Region {
    std::optional<std::int32_t> insn_count;  // none: the directives outside any region
    bool entry_state = false;
    std::vector<Placed> directives;
  };
  struct GivenRow {
    std::int64_t offset;
    const FrameRow* row;  // in one of row_pools
  };
  struct GivenRows {
    RowPool rows;
    std::vector<std::shared_ptr<const ExpressionPool>> expressions;  // memory of the rows' expressions
  };

  /// The region of the next directive.
  Region& current();
  [[gnu::cold]] void refuse(ErrorCode code, const std::string& place, const std::string& reason);

  const Arch* arch;
  std::string name;
  std::vector<SaidInstruction> said;
  std::vector<Region> regions;
  std::vector<GivenRow> rows;
  std::vector<std::shared_ptr<GivenRows>> row_pools;  // new rows go to the last one, unless a copy shares it
  std::vector<Instruction> calls;
  std::vector<Finding> findings;
  HandlerDraft handlers;
  std::optional<std::uint64_t> size;
  Addr personality = 0;
  Addr lsda = 0;
  Addr gp = 0;
  std::int64_t remembered = 0;
  bool ends_without_return = false;
};

using DraftRecord = ProcedureDraft::Record;

/// Returns the number by which directives name a register. -1: the CPU does not have it, or directives cannot name it.
inline int number_in_directives(const Arch& arch, unsigned dwarf) noexcept {
  const RegisterInfo* const info = arch.by_dwarf(dwarf);
  return info ? info->libunwind : -1;
}
/// Whether directives of this kind have a register beside their value.
constexpr bool names_register(int tag) noexcept { return tag >= UNW_DYN_SAVE_REG && tag <= UNW_DYN_ADD; }

/// "push({0, 1}, rbx): E_REG: reason". `offset` counts from the start of the code; an offset from its end is recorded
/// as none.
inline Finding finding_of(const std::string& place, ErrorCode code, const std::string& reason,
                          std::int64_t offset = -1) {
  Finding finding;
  finding.code = code;
  finding.offset = std::max(offset, std::int64_t{-1});
  finding.message = place + ": " + finding_name(code) + ": " + reason;
  return finding;
}

}  // namespace jitunwind
