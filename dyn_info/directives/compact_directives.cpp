// Directives as most code has them, straight to compact rows: constants are added to SP, registers are saved in slots,
// the frame pointer is SP, states are remembered and come back. A fourth of the instructions that DirectiveMachine
// takes, which runs everything else.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"

namespace jitunwind {
namespace {

constexpr std::uint32_t k_most_regions = 16, k_most_ops = 1024;  // of one region

/// Directives of one instruction are applied in this order.
enum class CompactStep : std::uint8_t { copy, reload_sp, add_sp, set_fp, save, label };

/// The part of the state of a frame (FrameState) that a processor has in registers; the rest are the slots.
struct CompactState {
  std::int64_t sp;        ///< CFA - SP
  std::int64_t fp;        ///< CFA - frame pointer
  std::int64_t old_sp;    ///< `sp` before the present instruction
  std::uint16_t deepest;  ///< the largest slot; above them: one became smaller
  bool has_fp;
  bool sets_fp;      ///< the present instruction does
  CompactStep step;  ///< of it
};
constexpr std::uint16_t k_not_known = 0x100;

/// False of a function: it does not know, and DirectiveMachine tells.
class CompactRun {
 public:
  /// `row` is worked on in place.
  CompactRun(const CompactLayout& layout, std::int64_t units, std::int64_t x, CompactRow& row) noexcept
      : layout_(layout), arch_(layout.arch()), row_(row), units_(units), x_(x) {}

  /// Runs as far as the row, and completes it.
  bool run(const unw_dyn_region_info_t* region) noexcept {
    CompactState now{arch_.entry_cfa, 0, arch_.entry_cfa, 0, false, false, CompactStep::copy};
    row_ = {};
    if (arch_.ra_in_memory) now.deepest = row_.slots[k_ra] = static_cast<std::uint8_t>(-arch_.entry_ra / k_word);
    std::int64_t end = 0;  // of the region before
    for (std::uint32_t regions = 0; region != nullptr; region = region->next) {
      if (++regions > k_most_regions || region->op_count > k_most_ops) return false;
      if (has_arrived()) continue;
      const std::int64_t length = std::abs(std::int64_t{region->insn_count});
      const bool at_end = region->insn_count < 0;
      const std::int64_t begin = at_end ? units_ - length : end;
      if (at_end && (region->next != nullptr || begin < end)) return false;
      end = begin + length;
      if (x_ < begin)
        to_ = begin;
      else if (!run_directives(*region, begin, length, now))
        return false;
    }
    return finish(now);
  }
  std::int64_t from() const noexcept { return from_; }
  std::int64_t to() const noexcept { return std::min(to_, units_); }

 private:
  static constexpr std::size_t k_ra = CompactLayout::k_return_address;
  static constexpr std::int64_t k_word = CompactRow::k_word;

  bool finish(const CompactState& now) noexcept {
    const std::int64_t cfa = now.has_fp ? now.fp : now.sp;
    if (cfa < 0 || cfa % k_word != 0 || cfa / k_word > 0xffff || row_.slots[k_ra] == 0) return false;
    row_.cfa_words = static_cast<std::uint16_t>(cfa / k_word);
    row_.base = static_cast<std::uint8_t>(now.has_fp ? layout_.columns()[layout_.fp_slot()] : layout_.sp_column());
    row_.deepest =
        now.deepest < k_not_known ? static_cast<std::uint8_t>(now.deepest) : *std::ranges::max_element(row_.slots);
    return true;
  }

  bool has_arrived() const noexcept { return to_ != k_when_end; }

  /// ADD and SPILL_SP_REL, of which nearly all lists consist, are run here.
  [[gnu::always_inline]] bool run_directives(const unw_dyn_region_info_t& region, std::int64_t begin,
                                             std::int64_t length, CompactState& now) noexcept {
    const int sp = arch_.by_dwarf(arch_.sp)->libunwind;
    const unw_dyn_op_t* op = region.op;
    const unw_dyn_op_t* const end = op + region.op_count;
    std::int64_t instruction = k_when_entry - 1;
    from_ = begin;
    for (; op != end && op->tag != UNW_DYN_STOP; ++op) {
      const std::int64_t when = effective_when(*op, length - 1, std::max(instruction, k_when_entry));
      if (when != instruction) {
        if (when < instruction || !end_instruction(now)) return false;
        if (x_ - begin <= when) {
          to_ = begin + when + 1;
          break;
        }
        instruction = when;
        from_ = begin + when + 1;
      }
      if (op->tag == UNW_DYN_ADD) {
        if (op->reg != sp || op->val == UNW_DYN_ADD_UNKNOWN || !takes(CompactStep::add_sp, now)) return false;
        now.sp = static_cast<std::int64_t>(static_cast<std::uint64_t>(now.sp) - op->val);
      } else if (op->tag == UNW_DYN_SPILL_SP_REL) {
        if (!takes(CompactStep::save, now) || !save(*op, now.sp, now.deepest)) return false;
      } else {
        state_ = now;
        if (!run_other(*op)) return false;
        now = state_;
      }
    }
    // Those that are not run must be in order, too.
    for (std::int64_t latest = k_when_entry; has_arrived() && op != end && op->tag != UNW_DYN_STOP; ++op) {
      const std::int64_t when = effective_when(*op, length - 1, latest);
      if (when < latest || static_cast<std::uint8_t>(op->tag) > UNW_DYN_ALIAS) return false;
      latest = when;
    }
    if (has_arrived()) return true;
    (x_ - begin < length ? to_ : from_) = begin + length;
    return end_instruction(now);
  }

  /// Runs the others, on state_.
  [[gnu::noinline]] bool run_other(const unw_dyn_op_t& op) noexcept {
    const int sp = arch_.by_dwarf(arch_.sp)->libunwind, fp = arch_.by_dwarf(arch_.fp)->libunwind;
    switch (op.tag) {
      case UNW_DYN_SPILL_FP_REL:
        return takes(CompactStep::save, state_) && state_.has_fp && save(op, state_.fp, state_.deepest);
      case UNW_DYN_SAVE_REG:
        if (op.reg == fp && op.val == static_cast<unw_word_t>(sp)) {
          if (!state_.has_fp || !takes(CompactStep::reload_sp, state_)) return false;
          state_.sp = state_.fp;
          return true;
        }
        if (op.reg != sp || op.val != static_cast<unw_word_t>(fp) || !takes(CompactStep::set_fp, state_)) return false;
        state_.fp = state_.sp;
        return state_.has_fp = state_.sets_fp = true;
      case UNW_DYN_LABEL_STATE:
        if (!takes(CompactStep::label, state_)) return false;
        label_ = op.val;
        remembered_ = state_;
        remembered_row_ = row_;
        return has_label_ = true;
      case UNW_DYN_COPY_STATE:
        if (!has_label_ || op.val != label_ || !takes(CompactStep::copy, state_)) return false;
        state_ = remembered_;
        row_ = remembered_row_;
        return end_instruction(state_);
      default:
        return false;
    }
  }

  bool takes(CompactStep step, CompactState& now) noexcept {
    if (step >= CompactStep::save) settle(now);
    return step >= std::exchange(now.step, step);
  }

  bool save(const unw_dyn_op_t& op, std::int64_t base, std::uint16_t& deepest) noexcept {
    const std::size_t slot = layout_.slot_of_libunwind(static_cast<std::uint64_t>(op.reg));
    const std::uint64_t below = static_cast<std::uint64_t>(base) - op.val;
    if (slot >= layout_.size() || below % k_word != 0 || below / k_word - 1 >= 255) return false;
    const auto words = static_cast<std::uint8_t>(below / k_word);
    const bool was_saved = std::exchange(row_.slots[slot], words) != 0;
    deepest = std::max<std::uint16_t>(deepest, was_saved ? k_not_known : words);
    return true;
  }

  bool ra_at_entry() const noexcept { return row_.slots[k_ra] == (arch_.ra_in_memory ? -arch_.entry_ra / k_word : 0); }

  /// The deallocation rule (FrameState::settle), where SP was raised.
  void settle(CompactState& now) noexcept {
    if (now.sp >= now.old_sp) return;
    if (frees_frame_pointer(now.sp, now.old_sp)) now.has_fp = false;
    now.deepest = k_not_known;
    now.old_sp = now.sp;
  }
  [[gnu::noinline]] bool frees_frame_pointer(std::int64_t sp, std::int64_t old_sp) noexcept {
    bool frees = false;
    for (std::size_t i = 0; i < layout_.size(); ++i) {
      const std::int64_t below = row_.slots[i] * k_word;
      if (below == 0 || below <= sp || below > old_sp || (i == k_ra && ra_at_entry())) continue;
      row_.slots[i] = 0;
      frees = frees || i == layout_.fp_slot();
    }
    return frees;
  }

  /// States that FrameState judges to be wrong are left to it.
  bool end_instruction(CompactState& now) noexcept {
    settle(now);
    if (now.sets_fp && now.has_fp && row_.slots[layout_.fp_slot()] == 0) return false;
    now.old_sp = now.sp;
    now.step = CompactStep::copy;
    now.sets_fp = false;
    return now.sp >= arch_.entry_cfa || !ra_at_entry();
  }

  const CompactLayout& layout_;
  const Arch& arch_;
  CompactRow& row_;
  const std::int64_t units_;
  const std::int64_t x_;
  std::int64_t from_ = 0;
  std::int64_t to_ = k_when_end;
  bool has_label_ = false;
  unw_word_t label_ = 0;  // the latest one
  CompactState state_;
  CompactState remembered_;
  CompactRow remembered_row_;
};

}  // namespace

bool find_compact_row(const unw_dyn_info_t& info, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept {
  const AddrRange code = code_of(info);
  const int bits = std::countr_zero(layout.arch().unit);
  if (info.format != UNW_INFO_FORMAT_DYNAMIC || layout.fp_slot() >= layout.size() || !code.contains(at) ||
      code.size() >> bits << bits != code.size())
    return false;
  CompactRun run(layout, static_cast<std::int64_t>(code.size() >> bits),
                 static_cast<std::int64_t>((at - code.begin) >> bits), out);
  if (!run.run(info.u.pi.regions)) return false;
  range = {code.begin + (static_cast<Addr>(run.from()) << bits), code.begin + (static_cast<Addr>(run.to()) << bits)};
  return true;
}

}  // namespace jitunwind
