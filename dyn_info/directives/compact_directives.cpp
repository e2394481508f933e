// Directives as most code has them, straight to compact rows: constants are added to SP, registers are saved in slots,
// the frame pointer is SP, states are remembered and come back. A fourth of the instructions that DirectiveMachine
// takes, which runs everything else.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"

namespace jitunwind {
namespace {

constexpr std::uint32_t k_most_regions = 16, k_most_ops = 1024;  // of one region

/// The state of a frame, as in FrameState.
struct CompactState {
  std::int64_t sp;  ///< CFA - SP
  std::int64_t fp;  ///< CFA - frame pointer
  bool has_fp;
  std::array<std::uint8_t, CompactRow::k_slots> slots;  ///< words below the CFA; 0: not saved
  std::uint16_t deepest;                                ///< the largest of `slots`; above them: one became smaller
};
constexpr std::uint16_t k_not_known = 0x100;

/// False of a function: it does not know, and DirectiveMachine tells.
class CompactRun {
 public:
  CompactRun(const CompactLayout& layout, std::int64_t units, std::int64_t x) noexcept
      : layout_(layout), arch_(layout.arch()), units_(units), x_(x), to_(units) {
    state_ = {arch_.entry_cfa, 0, false, {}, 0};
    if (arch_.ra_in_memory) state_.slots[k_ra] = static_cast<std::uint8_t>(-arch_.entry_ra / k_word);
    state_.deepest = state_.slots[k_ra];
  }

  /// Precondition: what is before the region in its list was run.
  bool run(const unw_dyn_region_info_t& region) noexcept {
    if (++regions_ > k_most_regions || region.op_count > k_most_ops) return false;
    if (has_arrived_) return true;
    const std::int64_t length = std::abs(std::int64_t{region.insn_count});
    const bool at_end = region.insn_count < 0;
    const std::int64_t begin = at_end ? units_ - length : end_;
    if (at_end && (region.next != nullptr || begin < end_)) return false;
    if (x_ < begin) return arrive(begin);
    from_ = begin;
    end_ = begin + length;
    if (!run_directives(region, begin, length)) return false;
    if (has_arrived_) return true;
    if (x_ < end_) return arrive(end_);
    from_ = end_;
    return true;
  }

  bool finish(CompactRow& out) const noexcept {
    const std::int64_t cfa = state_.has_fp ? state_.fp : state_.sp;
    if (cfa < 0 || cfa % k_word != 0 || cfa / k_word > 0xffff || state_.slots[k_ra] == 0) return false;
    out.cfa_words = static_cast<std::uint16_t>(cfa / k_word);
    out.base = static_cast<std::uint8_t>(state_.has_fp ? layout_.columns()[layout_.fp_slot()] : layout_.sp_column());
    out.slots = state_.slots;
    out.deepest =
        state_.deepest < k_not_known ? static_cast<std::uint8_t>(state_.deepest) : *std::ranges::max_element(out.slots);
    return true;
  }
  std::int64_t from() const noexcept { return from_; }
  std::int64_t to() const noexcept { return std::min(to_, units_); }

 private:
  /// Directives of one instruction are applied in this order.
  enum class Step : unsigned { copy, reload_sp, add_sp, set_fp, save, label };
  static constexpr std::size_t k_ra = CompactLayout::k_return_address;
  static constexpr std::int64_t k_word = CompactRow::k_word;

  bool arrive(std::int64_t to) noexcept {
    to_ = to;
    return has_arrived_ = true;
  }

  bool run_directives(const unw_dyn_region_info_t& region, std::int64_t begin, std::int64_t length) noexcept {
    std::int64_t latest = k_when_entry, instruction = k_when_entry - 1;
    for (const unw_dyn_op_t& op : std::span(region.op, region.op_count)) {
      if (op.tag == UNW_DYN_STOP) break;
      const std::int64_t when = effective_when(op, length - 1, latest);
      if (when < latest) return false;
      latest = when;
      if (has_arrived_ && static_cast<std::uint8_t>(op.tag) > UNW_DYN_ALIAS) return false;
      if (has_arrived_) continue;
      if (when != instruction) {
        instruction = when;
        if (!end_instruction()) return false;
        if (x_ <= begin + when && arrive(begin + when + 1)) continue;
        from_ = begin + when + 1;
      }
      if (!run_one(op)) return false;
    }
    return has_arrived_ || end_instruction();
  }

  bool run_one(const unw_dyn_op_t& op) noexcept {
    switch (op.tag) {
      case UNW_DYN_ADD:
        if (op.reg != sp_ || op.val == UNW_DYN_ADD_UNKNOWN || !takes(Step::add_sp)) return false;
        state_.sp = static_cast<std::int64_t>(static_cast<std::uint64_t>(state_.sp) - op.val);
        return true;
      case UNW_DYN_SPILL_SP_REL:
        return takes(Step::save) && save(op, state_.sp);
      case UNW_DYN_SPILL_FP_REL:
        return takes(Step::save) && state_.has_fp && save(op, state_.fp);
      case UNW_DYN_SAVE_REG:
        if (op.reg == fp_ && op.val == static_cast<unw_word_t>(sp_)) {
          if (!state_.has_fp || !takes(Step::reload_sp)) return false;
          state_.sp = state_.fp;
          return true;
        }
        if (op.reg != sp_ || op.val != static_cast<unw_word_t>(fp_) || !takes(Step::set_fp)) return false;
        state_.fp = state_.sp;
        return state_.has_fp = sets_fp_ = true;
      case UNW_DYN_LABEL_STATE:
        if (!takes(Step::label)) return false;
        label_ = op.val;
        remembered_ = state_;
        return has_label_ = true;
      case UNW_DYN_COPY_STATE:
        if (!has_label_ || op.val != label_ || !takes(Step::copy)) return false;
        state_ = remembered_;
        old_sp_ = state_.sp;
        return true;
      default:
        return false;
    }
  }

  bool takes(Step step) noexcept {
    if (step >= Step::save && state_.sp < old_sp_) settle();
    return step >= std::exchange(step_, step);
  }

  bool save(const unw_dyn_op_t& op, std::int64_t base) noexcept {
    const RegisterInfo* const reg = arch_.by_libunwind(op.reg);
    const std::size_t slot = reg ? layout_.slot_or_size(reg->dwarf) : layout_.size();
    const std::uint64_t below = static_cast<std::uint64_t>(base) - op.val;
    if (slot >= layout_.size() || below % k_word != 0 || below / k_word - 1 >= 255) return false;
    const auto words = static_cast<std::uint8_t>(below / k_word);
    const bool is_first = std::exchange(state_.slots[slot], words) == 0;
    state_.deepest = std::max<std::uint16_t>(state_.deepest, is_first ? words : k_not_known);
    return true;
  }

  bool ra_at_entry() const noexcept {
    return state_.slots[k_ra] == (arch_.ra_in_memory ? -arch_.entry_ra / k_word : 0);
  }

  /// The deallocation rule (FrameState::settle), where SP was raised.
  [[gnu::noinline]] void settle() noexcept {
    for (std::size_t i = 0; i < layout_.size(); ++i) {
      const std::int64_t below = state_.slots[i] * k_word;
      if (below == 0 || below <= state_.sp || below > old_sp_ || (i == k_ra && ra_at_entry())) continue;
      state_.slots[i] = 0;
      if (i == layout_.fp_slot()) state_.has_fp = false;
    }
    state_.deepest = k_not_known;
    old_sp_ = state_.sp;
  }

  /// States that FrameState judges to be wrong are left to it.
  bool end_instruction() noexcept {
    if (state_.sp < old_sp_) settle();
    old_sp_ = state_.sp;
    step_ = Step::copy;
    if (std::exchange(sets_fp_, false) && state_.has_fp && state_.slots[layout_.fp_slot()] == 0) return false;
    return state_.sp >= arch_.entry_cfa || !ra_at_entry();
  }

  const CompactLayout& layout_;
  const Arch& arch_;
  const std::int64_t units_;
  const std::int64_t x_;
  std::int64_t from_ = 0;
  std::int64_t to_;
  std::int64_t end_ = 0;  // of the region before
  std::uint32_t regions_ = 0;
  bool has_arrived_ = false;
  CompactState state_;
  const int sp_ = arch_.by_dwarf(arch_.sp)->libunwind;
  const int fp_ = arch_.by_dwarf(arch_.fp)->libunwind;
  // The next three are the instruction's that is run.
  std::int64_t old_sp_ = arch_.entry_cfa;
  Step step_ = Step::copy;
  bool sets_fp_ = false;
  bool has_label_ = false;
  unw_word_t label_ = 0;  // the latest one
  CompactState remembered_;
};

}  // namespace

bool find_compact_row(const unw_dyn_info_t& info, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept {
  const AddrRange code = code_of(info);
  const Addr unit = layout.arch().unit;
  if (info.format != UNW_INFO_FORMAT_DYNAMIC || layout.fp_slot() >= layout.size() || !code.contains(at) ||
      code.size() % unit != 0)
    return false;
  CompactRun run(layout, static_cast<std::int64_t>(code.size() / unit),
                 static_cast<std::int64_t>((at - code.begin) / unit));
  for (const unw_dyn_region_info_t* region = info.u.pi.regions; region != nullptr; region = region->next)
    if (!run.run(*region)) return false;
  range = {code.begin + static_cast<Addr>(run.from()) * unit, code.begin + static_cast<Addr>(run.to()) * unit};
  return run.finish(out);
}

}  // namespace jitunwind
