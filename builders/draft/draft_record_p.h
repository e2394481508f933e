// The recorded calls of a ProcedureDraft, as plain data for its build().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/builders/draft/procedure_draft.h"
#include "jitunwind/builders/draft/row_pool_internal.h"
#include "jitunwind/builders/shapes/shape_lists_p.h"
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

struct EntryStateError {
  ErrorCode code = ErrorCode::invalid_argument;
  const char* what = "";  ///< never dies
  std::string reason;     ///< the same with the row
};

/// The directives of consecutive empty regions, one simulated instruction each, after which the row of a procedure is
/// `row`. `sp_distance` is CFA - SP where it is known. The result is interpreted and compared with `row`; a row that
/// directives cannot express is refused.
Result<std::vector<std::vector<DraftDirective>>, EntryStateError> plan_entry_state(
    const FrameRow& row, const Arch& arch, std::optional<std::int64_t> sp_distance);

/// Lays a draft out. Directives outside any region become one region or two: the beginning, and the end that is counted
/// from the procedure's end. Two regions let procedures with different bodies share a shape.
class DraftLayout {
 public:
  explicit DraftLayout(const DraftRecord& draft);

  std::vector<RegionSpec> regions;
  std::vector<Finding> findings;

 private:
  using Placed = DraftRecord::Placed;
  /// A range in units; a start from the end is negative.
  struct Extent {
    std::int64_t start;
    std::int64_t count;
    bool from_end() const noexcept { return start < 0; }
  };

  void add_explicit(const DraftRecord::Region& region);
  void add_automatic(const DraftRecord::Region& region);
  void add(const Extent& extent, std::vector<const Placed*> directives);
  std::optional<std::int64_t> tail_begin(const DraftRecord::Region& region) const;
  std::optional<std::int64_t> end_unit(const Placed& placed) const;
  std::int64_t from_end(std::int64_t offset, const Instruction& at) const;

  std::int32_t place(const Placed& placed, const Extent& extent);
  std::int32_t place(const Instruction& at, const Extent& extent);
  unw_dyn_op_t encode(const Placed& placed, std::int32_t when);
  int number_of(RegNum reg);
  unw_word_t label_number(std::int64_t remembered);
  void split_last();
  [[gnu::cold]] void refuse(ErrorCode code, std::int64_t offset, const std::string& reason);

  const Arch& arch_;
  const std::vector<SaidInstruction>& said_;
  const Placed* placing_ = nullptr;
  std::uint32_t refused_ = 0;
  std::optional<std::int64_t> size_;    // bytes
  std::int64_t next_start_ = 0;         // units
  std::set<unw_word_t> labels_in_use_;  // by explicit directives
  std::vector<unw_word_t> free_labels_;
  bool pops_frames_ = false;
};

// Checks idioms for combinations that no instructions can have, whatever their directives are: two instructions in the
// same bytes, two registers in one slot, a register saved twice, or one popped from another one's slot.

/// Hint for a draft that releases a frame twice.
inline constexpr const char* k_early_return_hint =
    "; behind an early return the frame is there again: remember() in front of its epilogue, restore() with its ret";

/// Follows the idioms of a draft in the order of their code, as far as SP's distance to the caller's frame is known.
/// Idioms between directives, in explicit regions, are checked for their bytes alone.
class IdiomCheck {
 public:
  explicit IdiomCheck(const DraftRecord& draft);
  std::vector<Finding> run() &&;

 private:
  using Placed = DraftRecord::Placed;

  /// The caller's value of a register is in memory at CFA + offset, or in another register.
  struct Saved {
    RegNum reg;
    std::uint32_t said;
    std::optional<std::int64_t> offset;
    RegNum in = k_no_reg;
  };
  /// The register holds its caller's value again.
  struct Restored {
    RegNum reg;
    std::uint32_t said;
    bool with_slot;  ///< its slot was released, which need not mean that the register was read
  };
  struct State {
    std::optional<std::int64_t> depth;  // CFA - SP
    RegNum fp = k_no_reg;
    std::optional<std::int64_t> fp_depth;
    std::vector<Saved> saved;
    std::vector<Restored> restored;
  };

  void check_bytes();
  void follow(const DraftRecord::Region& region);
  void check_calls_up_to(std::int64_t end);
  void follow_instruction(std::span<const Placed* const> directives);
  void move_sp(std::span<const Placed* const> directives);
  void check_pop(std::uint32_t said);
  void check_reload(std::uint32_t said);
  void check_return_address(std::uint32_t said);
  void check_left(std::uint32_t said);
  void release(std::optional<std::int64_t> depth_before, std::uint32_t said);
  void save(const Placed& directive);
  void move(const DraftDirective& directive, std::uint32_t said);
  void restore(const Saved& saved, std::uint32_t said, bool with_slot = false);
  std::string not_saved(RegNum reg) const;
  bool is_preserved(RegNum reg) const;
  void save_at(RegNum reg, std::optional<std::int64_t> offset, std::uint32_t said);
  std::int64_t place(const Instruction& at, std::int64_t offset) const;
  const Saved* saved_at(std::int64_t offset) const;
  std::string text(std::uint32_t said) const { return draft_.said[said - 1].text(arch_); }
  const char* name_of(RegNum reg) const;
  [[gnu::cold]] void refuse(ErrorCode code, std::uint32_t said, const std::string& reason);

  const DraftRecord& draft_;
  const Arch& arch_;
  State state_;
  std::vector<std::pair<std::int64_t, State>> remembered_;
  std::vector<Instruction> calls_;  // in the order of their code
  std::size_t next_call_ = 0;       // next one to check
  std::vector<Finding> findings_;
};

}  // namespace jitunwind
