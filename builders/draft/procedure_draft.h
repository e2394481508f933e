// The recorded content of a ProcedureBuilder, without the CPU's types: directives, rows, and their places. build() lays
// directives out in regions, or converts everything to rows if a row was given, and checks the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/frame_handler.h"
#include "jitunwind/builders/instruction.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/rows/row_text.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The value of an ADD by an unknown amount.
inline constexpr std::int64_t k_unknown_distance = INT64_MIN;

/// One directive without a place, its registers by DWARF number.
struct DraftDirective {
  unw_dyn_operation_t tag = UNW_DYN_STOP;
  RegNum reg = k_no_reg;
  RegNum saved_in = k_no_reg;  ///< SAVE_REG only
  std::int64_t value = 0;

  static DraftDirective save_reg(RegNum reg, RegNum in) noexcept { return {UNW_DYN_SAVE_REG, reg, in, 0}; }
  static DraftDirective spill_sp_rel(RegNum reg, std::int64_t offset) noexcept {
    return {UNW_DYN_SPILL_SP_REL, reg, k_no_reg, offset};
  }
  static DraftDirective spill_fp_rel(RegNum reg, std::int64_t offset) noexcept {
    return {UNW_DYN_SPILL_FP_REL, reg, k_no_reg, offset};
  }
  static DraftDirective add(RegNum reg, std::int64_t value) noexcept { return {UNW_DYN_ADD, reg, k_no_reg, value}; }
  static DraftDirective pop_frames(std::int64_t count) noexcept {
    return {UNW_DYN_POP_FRAMES, k_no_reg, k_no_reg, count};
  }
  static DraftDirective label_state(unw_word_t label) noexcept {
    return {UNW_DYN_LABEL_STATE, k_no_reg, k_no_reg, static_cast<std::int64_t>(label)};
  }
  static DraftDirective copy_state(unw_word_t label) noexcept {
    return {UNW_DYN_COPY_STATE, k_no_reg, k_no_reg, static_cast<std::int64_t>(label)};
  }
  static DraftDirective alias(Addr address) noexcept {
    return {UNW_DYN_ALIAS, k_no_reg, k_no_reg, static_cast<std::int64_t>(address)};
  }
  static DraftDirective stop() noexcept { return {}; }

  /// SP moves towards the caller's frame, so that an epilogue may begin here.
  bool releases_stack(const Arch& arch) const noexcept;
};

/// The arguments of an idiom, without its instruction.
struct Idiom {
  const char* name;
  std::array<RegNum, 2> regs{k_no_reg, k_no_reg};
  bool has_number = false;
  std::int64_t number = 0;

  Idiom(const char* n, std::initializer_list<RegNum> r, std::optional<std::int64_t> value) noexcept
      : name(n), has_number(value.has_value()), number(value.value_or(0)) {
    auto next = regs.begin();
    for (const RegNum reg : r) *next++ = reg;
  }
};

/// ProcedureBuilder is the interface; this class is not for direct use. Every function only records; build() reports
/// the mistakes. A copy is independent. Allocates; one thread at a time.
class ProcedureDraft {
 public:
  struct Record;  // draft_record_p.h

  ProcedureDraft(const Arch& arch, std::string_view name);
  ProcedureDraft(const ProcedureDraft& other);
  ProcedureDraft& operator=(ProcedureDraft other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~ProcedureDraft();

  const Arch& arch() const noexcept;

  void open_region(std::int32_t insn_count);
  void directive(std::int32_t when, const DraftDirective& directive);
  void raw(const unw_dyn_op_t& op);
  void instruction(const Idiom& idiom, Instruction at, std::span<const DraftDirective> directives);
  void remember();
  void restore(Instruction last);
  void entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance);
  void entry_state(std::string_view row, std::optional<std::int64_t> sp_distance);
  void row_at(std::int64_t offset, const FrameRow& row);
  void row_at(std::int64_t offset, std::string_view row);

  void add_call(Instruction at);
  void set_size(std::uint64_t bytes);
  void set_personality(Addr handler);
  void set_lsda(Addr lsda);
  void set_gp(Addr gp);
  void set_ends_without_return();

  // Exceptions: handler_draft_p.h.

  void call_site(Instruction calls, std::int64_t pad);
  void terminates(Instruction calls);
  void catches(const std::type_info* type);
  void catches_all();
  void allows(std::span<const std::type_info* const> types);
  void cleans_up();
  int selector(const std::type_info* type);
  void set_frame_handler(FrameHandler handler);

  Result<Description, BuildError> build() const;

 private:
  Record* record_;  // owned, never null
};

}  // namespace jitunwind
#pragma GCC visibility pop
