// The rows of ordinary frames in 16 bytes, and how to take a step with one of them without making the row again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

class CallerRule;

/// The place of code in its shape, as an address that no code has. Nothing is ever registered at such an address. So a
/// rule that is kept there holds for ever. Code that replaces other code has another place, or the same rows.
class AlikePlace {
 public:
  constexpr AlikePlace() noexcept = default;
  /// Preconditions: shape > 0, offset <= k_most_offset. `has_facts`: of a personality routine or its data, which each
  /// procedure has for itself. `first`: room for a rule of this place, or another one of the shape.
  constexpr AlikePlace(std::uint32_t shape, std::uint64_t offset, bool has_facts,
                       std::atomic<CallerRule>& first) noexcept
      : at_(k_no_code | (has_facts ? k_facts : 0) | std::uint64_t{shape} << k_shape_at | offset),
        first_(std::addressof(first)) {}
  static constexpr std::uint64_t k_most_offset = 0xffff;

  constexpr explicit operator bool() const noexcept { return at_ != 0; }
  constexpr Addr at() const noexcept { return at_; }
  constexpr bool has_facts() const noexcept { return (at_ & k_facts) != 0; }
  constexpr std::uint32_t offset() const noexcept { return static_cast<std::uint32_t>(at_ & k_most_offset); }
  constexpr std::atomic<CallerRule>& first() const noexcept { return *first_; }

 private:
  static constexpr unsigned k_shape_at = 24;
  static constexpr std::uint64_t k_no_code = std::uint64_t{1} << 63, k_facts = std::uint64_t{1} << 62;

  Addr at_ = 0;
  std::atomic<CallerRule>* first_ = nullptr;
};

struct AlikeRules;
struct NewRow;

/// The shapes of one address space's code.
class CodeShapes {
 public:
  /// The rule that is kept of code like that which is at `at` at some moment of the call. None: there is no such rule.
  /// Then the row is made at once, if it is of a short form (NewRow::is_made). Needs room on the stack
  /// (small_stack_internal.h), and is signal-safe.
  virtual CallerRule find_rule(Addr at, const AlikeRules& rules, NewRow& row) const noexcept = 0;

 protected:
  ~CodeShapes() = default;
};

/// CFA = base + cfa_words words; the register of slot i is saved slots[i] words below the CFA, or unchanged where that
/// is 0. Words are this machine's: rows of CPUs with others are not compact.
struct CompactRow {
  static constexpr std::size_t k_slots = 12;
  static constexpr std::uintptr_t k_word = sizeof(std::uintptr_t);

  std::uint16_t cfa_words = 0;
  std::uint8_t base = 0;     ///< column in a RegisterFile
  std::uint8_t deepest = 0;  ///< the largest of `slots`
  std::array<std::uint8_t, k_slots> slots{};

  friend bool operator==(const CompactRow&, const CompactRow&) = default;
};
static_assert(sizeof(CompactRow) == 16);

/// The registers of slots: the return address, and the preserved general registers of a CPU in the order of its table.
class CompactLayout {
 public:
  static constexpr std::size_t k_return_address = 0;  ///< slot

  /// The layout has slots if the CPU has little-endian words of this machine's size and no more such registers than
  /// fit. Otherwise it has none, and no row is compact.
  explicit CompactLayout(const Arch& arch) noexcept;

  const Arch& arch() const noexcept { return *arch_; }
  std::size_t size() const noexcept { return size_; }
  RegNum reg(std::size_t slot) const noexcept { return regs_[slot]; }
  /// The slot of a register; size() or more: no row saves it.
  std::size_t slot_or_size(std::uint64_t reg) const noexcept {
    return reg < slots_.size() ? slots_[static_cast<std::size_t>(reg)] : k_no_slot;
  }
  /// That of one by RegisterInfo::libunwind.
  std::size_t slot_of_libunwind(std::uint64_t number) const noexcept {
    return number < libunwind_slots_.size() ? libunwind_slots_[static_cast<std::size_t>(number)] : k_no_slot;
  }
  const std::array<std::int8_t, CompactRow::k_slots>& columns() const noexcept { return columns_; }
  /// The frame pointer's slot; size() or more: it has none.
  std::size_t fp_slot() const noexcept { return fp_slot_; }
  int fp_column() const noexcept { return fp_column_; }
  int sp_column() const noexcept { return sp_column_; }
  int pc_column() const noexcept { return pc_column_; }
  /// Columns that keep their values in a caller unless a row says otherwise.
  std::uint64_t preserved() const noexcept { return preserved_; }

 private:
  static constexpr std::uint8_t k_no_slot = 0xff;

  const Arch* arch_;
  std::size_t size_ = 0;
  std::uint64_t preserved_ = 0;
  std::size_t fp_slot_ = k_no_slot;
  int fp_column_ = -1;
  int sp_column_ = -1;
  int pc_column_ = -1;
  std::array<std::uint8_t, 64> slots_;            // by DWARF number; registers with larger ones have none
  std::array<std::uint8_t, 32> libunwind_slots_;  // likewise
  std::array<RegNum, CompactRow::k_slots> regs_{};
  std::array<std::int8_t, CompactRow::k_slots> columns_{};
};

/// The answer of a source to a caller that takes rows of either form.
enum class RowAnswer : std::uint8_t {
  none,     ///< the address is not its business
  full,     ///< AnyRow::full is the row
  compact,  ///< AnyRow::compact is the row; AnyRow::full has its origin, keeps_by and range alone
  broken,   ///< it covers the address, but its data is broken: AnyRow::error
};

/// The place for a row of either form. RowAnswer tells which of its members a source has set.
struct AnyRow {
  /// `compact_layout` null: only full rows are wanted.
  explicit AnyRow(FrameRow& row, const CompactLayout* compact_layout = nullptr) noexcept
      : full(row), layout(compact_layout) {}

  /// The answer to a question for a full row, whose result this is.
  RowAnswer answer(const Found& found) noexcept {
    if (!found) return fail(found.error());
    return *found ? RowAnswer::full : RowAnswer::none;
  }
  RowAnswer fail(const Error& why) noexcept {
    error = why;
    return RowAnswer::broken;
  }
  /// The result of such a question. Precondition: there is no layout.
  Found found(RowAnswer answer) const noexcept {
    return answer == RowAnswer::broken ? Found(error) : Found(answer == RowAnswer::full);
  }

  FrameRow& full;
  const CompactLayout* layout;
  CompactRow compact{};
  /// Null: not wanted. A source that has found the row's procedure at the same time puts it here, its origin included.
  ProcedureInfo* procedure = nullptr;
  AlikePlace alike{};  ///< if there is one, the row holds for all code alike
  Error error;
};

/// A source that has rows of either form.
class AnyRowSource : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept final;
  RowAnswer find_any_row(Lookup& lookup, AnyRow& out) const noexcept override = 0;

 protected:
  ~AnyRowSource() = default;
};

/// False when the row says anything that a compact row cannot.
[[nodiscard]] bool compact(const FrameRow& row, const CompactLayout& layout, CompactRow& out) noexcept;
/// Makes the same of a row that also says that its return address is signed; false of others.
[[nodiscard]] bool compact_but_signed(const FrameRow& row, const CompactLayout& layout, CompactRow& out) noexcept;

/// The full row, but for range, origin and keeps_by.
FrameRow expand(const CompactRow& row, const CompactLayout& layout) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
