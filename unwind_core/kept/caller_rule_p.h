// A row in one word: how to find a frame's caller, in code where an ordinary row says it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/kept/compact_row_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The version by which a cached rule is valid, besides the registrations at its address. RowCache::kept_by() derives
/// it from KeepsBy of the row and from whether the module can be unloaded at all.
enum class KeptBy : std::uint8_t {
  nothing,  ///< the rule is not kept
  lasting,  ///< nothing else: the code is registered, or its module is never unloaded
  module,   ///< the version of the module
};

/// The part of a row that a step needs. The word says where the CFA, the return address and the frame pointer are. The
/// places of the other registers are the same for many rows, so the word has their number in a table of shapes
/// (row_cache_internal.h). The upper bits are a link: which entry of the table the caller was left by the last time.
class CallerRule {
 public:
  enum class Kind : unsigned {
    compact,
    // Rows that are frequent, and not compact. Their words describe a return address below SP, where no frame has one.
    // So the loop of a walk finds out at a check that it makes anyhow.
    outermost,  ///< the code says that it has no caller
    realigned,  ///< CFA = *(FP - n), FP = *FP: what gcc makes of a function that aligns its stack
    signal,     ///< a signal trampoline: all registers are in the ucontext_t at its SP
  };

  /// Whether the procedure is known to have a personality routine.
  enum class Handler : unsigned { unknown, none, known };

  constexpr CallerRule() noexcept = default;
  /// A rule of any kind but compact. `cfa_below_fp` counts words and is for realigned frames.
  constexpr CallerRule(KeptBy by, Kind kind, std::uint8_t cfa_below_fp = 0) noexcept
      : word_(of(by) | std::uint64_t{static_cast<unsigned>(kind)} << k_kind_at | std::uint64_t{0xff} << k_fp_at |
              std::uint64_t{cfa_below_fp} << k_shape_at) {}
  /// A compact rule. `fp_slot` is the frame pointer's in the row's layout. Precondition: the row may be kept, which
  /// rows of guesses may not.
  constexpr CallerRule(const CompactRow& row, RowOrigin origin, KeptBy by, bool base_is_frame_pointer,
                       std::size_t fp_slot) noexcept
      : word_(of(by) | row.cfa_words | std::uint64_t{base_is_frame_pointer} << k_base_at |
              std::uint64_t{row.slots[fp_slot] != 0} << k_saves_fp_at |
              std::uint64_t{row.slots[row.slots[fp_slot] != 0 ? fp_slot : CompactLayout::k_return_address]} << k_fp_at |
              std::uint64_t{static_cast<unsigned>(origin)} << k_origin_at) {}

  /// 0: there is no rule.
  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr KeptBy kept_by() const noexcept {
    if ((word_ & of(KeptBy::lasting)) == 0) return KeptBy::nothing;
    return is_of_module() ? KeptBy::module : KeptBy::lasting;
  }
  constexpr bool is_of_module() const noexcept { return (word_ >> k_module_at & 1) != 0; }
  constexpr Kind kind() const noexcept { return static_cast<Kind>(word_ >> k_kind_at & 3); }
  constexpr RowOrigin origin() const noexcept { return static_cast<RowOrigin>(word_ >> k_origin_at & 7); }
  /// Bytes.
  constexpr std::uint64_t cfa_below_frame_pointer() const noexcept {
    return (word_ >> k_shape_at & 0xff) * CompactRow::k_word;
  }
  constexpr bool base_is_frame_pointer() const noexcept { return (word_ >> k_base_at & 1) != 0; }
  /// Bytes.
  constexpr std::uint64_t cfa_offset() const noexcept { return cfa_words() * CompactRow::k_word; }
  constexpr std::uint16_t cfa_words() const noexcept { return static_cast<std::uint16_t>(word_); }
  /// False: the register is as it is in the caller.
  constexpr bool saves_frame_pointer() const noexcept { return (word_ >> k_saves_fp_at & 1) != 0; }
  static constexpr std::uint64_t k_most_below_cfa = 255 * CompactRow::k_word;
  /// Bytes. The value is the place of the return address if the frame pointer is not saved: that place can be read in
  /// any case.
  constexpr std::uint64_t frame_pointer_below_cfa() const noexcept {
    return (static_cast<std::uint32_t>(word_) >> k_fp_at) * CompactRow::k_word;
  }
  /// Bytes, where calls push nothing: the frame pointer is saved in a frame record, below the return address.
  constexpr std::uint64_t return_address_below_cfa() const noexcept {
    return frame_pointer_below_cfa() - (saves_frame_pointer() ? CompactRow::k_word : 0);
  }
  /// The shape of a compact rule. 0: other registers than pc, SP and frame pointer are not known.
  constexpr unsigned shape() const noexcept { return static_cast<unsigned>(word_ >> k_shape_at) & k_most_shape; }
  static constexpr unsigned k_most_shape = 1023;
  /// The rule says where all registers are.
  constexpr bool is_whole() const noexcept { return kind() == Kind::compact && shape() != 0; }
  /// Precondition: it has none.
  constexpr CallerRule with_shape(unsigned shape) const noexcept {
    return CallerRule(word_ | std::uint64_t{shape} << k_shape_at);
  }

  constexpr Handler handler() const noexcept { return static_cast<Handler>(word_ >> k_handler_at & 3); }
  constexpr CallerRule with(Handler handler) const noexcept {
    return CallerRule((word_ & ~(std::uint64_t{3} << k_handler_at)) | std::uint64_t{static_cast<unsigned>(handler)}
                                                                          << k_handler_at);
  }
  /// Precondition: it is of another kind than compact, and has none.
  constexpr CallerRule with(RowOrigin origin) const noexcept {
    return CallerRule(word_ | std::uint64_t{static_cast<unsigned>(origin)} << k_origin_at);
  }

  /// The entry that this rule, which stands in `of_entry`, links to. Entries of one stack are mostly neighbours, so the
  /// lower half of the number is enough.
  constexpr std::uint32_t linked(std::uint32_t of_entry) const noexcept {
    return (of_entry & ~k_link_mask) | static_cast<std::uint32_t>(word_ >> k_link_at);
  }
  constexpr CallerRule with_link(std::uint32_t entry) const noexcept {
    return CallerRule((word_ & k_rule_mask) | std::uint64_t{entry & k_link_mask} << k_link_at);
  }
  /// The part of the word that the key of a CodeTable depends on: all but the link. A shift is one instruction.
  constexpr std::uint64_t digest() const noexcept { return word_ << (64 - k_link_at); }

 private:
  constexpr explicit CallerRule(std::uint64_t word) noexcept : word_(word) {}

  // The fields that a step tests are in the lower half, because tests of it have operands of 32 bits.
  static constexpr unsigned k_base_at = 16, k_saves_fp_at = 17, k_kept_at = 18, k_module_at = 19, k_kind_at = 20,
                            k_fp_at = 24, k_shape_at = 32, k_origin_at = 42, k_handler_at = 45;
  static constexpr unsigned k_link_at = 48;
  static constexpr std::uint32_t k_link_mask = 0xffff;
  static constexpr std::uint64_t k_rule_mask = (std::uint64_t{1} << k_link_at) - 1;

  static constexpr std::uint64_t of(KeptBy by) noexcept {
    return std::uint64_t{by != KeptBy::nothing} << k_kept_at | std::uint64_t{by == KeptBy::module} << k_module_at;
  }

  std::uint64_t word_ = 0;
};

}  // namespace jitunwind
#pragma GCC visibility pop
