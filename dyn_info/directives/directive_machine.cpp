#include <algorithm>
#include <utility>

#include "jitunwind/dyn_info/directives/directive_run_internal.h"

namespace jitunwind {
namespace {

// The effects of the directives of one instruction, in the order in which they are applied. copy and alias come before
// them, label comes after them.
enum Step : unsigned { reload_sp, add_sp, set_fp, add, save, pop_frames, copy, alias, label, none };

constexpr unsigned bit(unsigned step) noexcept { return 1u << step; }

constexpr unsigned k_instruction = bit(copy) - 1;  // all that change the frame

constexpr std::int64_t signed_value(const unw_dyn_op_t& op) noexcept { return static_cast<std::int64_t>(op.val); }

/// The value does not depend on the target's word: readers of a target convert it to that of this process.
bool is_unknown(const unw_dyn_op_t& op) noexcept { return op.val == UNW_DYN_ADD_UNKNOWN; }

const RegisterInfo* by_word(const Arch& arch, unw_word_t number) noexcept {
  return number <= 0x7fff ? arch.by_libunwind(static_cast<int>(number)) : nullptr;
}

constexpr Error k_no_pop{ErrorCode::e_pop, 0, "POP_FRAMES of 0"};
constexpr Error k_too_many_pops{ErrorCode::e_pop, 0, "POP_FRAMES pops more states than there are"};
constexpr Error k_unknown_label{ErrorCode::e_label, 0, "COPY_STATE of an unknown or later label"};

}  // namespace

const char* wrong_register(const unw_dyn_op_t& op, const RegisterInfo* reg, const Arch& arch) noexcept {
  if (op.tag < UNW_DYN_SAVE_REG || op.tag > UNW_DYN_ADD) return nullptr;
  if (!reg) return "no such register";
  if (op.tag == UNW_DYN_ADD) return nullptr;
  const bool is_sp = reg->dwarf == arch.sp;
  // The value that a caller keeps in a register can be described if a cursor has a value of the register, and if it is
  // no part of the CPU's state that the call itself makes.
  const bool preservable = reg->column >= 0 && reg->reg_class != RegClass::pseudo && !is_sp &&
                           (reg->dwarf != arch.pc || reg->dwarf == arch.ra);
  if (op.tag == UNW_DYN_SPILL_SP_REL) return preservable || is_sp ? nullptr : "register that cannot be saved";
  if (op.tag == UNW_DYN_SPILL_FP_REL) return preservable ? nullptr : "register that cannot be saved";
  const RegisterInfo* const in = by_word(arch, op.val);
  if (!in || in->reg_class == RegClass::pseudo || in->dwarf == arch.pc) return "no register to save in";
  if (in->dwarf == arch.sp) return is_sp || preservable ? nullptr : "SP cannot be reloaded from this register";
  if (!is_sp) return preservable ? nullptr : "register that cannot be saved";
  const bool addresses = in->column >= 0 && in->reg_class == RegClass::general;
  return addresses ? nullptr : "register that cannot be the frame pointer";
}

DirectiveMachine::DirectiveMachine(const Arch& arch, const RegionReader& reader, Addr first, std::int64_t units,
                                   DirectiveObserver* observer) noexcept
    : arch_(arch),
      reader_(reader),
      first_(first),
      units_(units),
      observer_(observer),
      sp_(arch.by_dwarf(arch.sp)),
      state_(arch),
      ops_(reader, budget_),
      entry_(arch) {}

[[gnu::cold]] bool DirectiveMachine::fail(const Error& error) noexcept {
  failure_ = {error.code, error.at != 0 ? error.at : static_cast<Addr>(unit_) * arch_.unit, error.what};
  return false;
}

[[gnu::cold]] bool DirectiveMachine::complain(const Error& error, std::uint32_t directive) noexcept {
  if (!observer_) return fail(error);
  const DirectiveObserver::Place place{static_cast<int>(region_), static_cast<int>(directive), unit_};
  if (!rebuilding_) observer_->finding(error.code, place, error.what);
  return true;
}

void DirectiveMachine::show_state(int directive, std::int64_t unit) noexcept {
  if (observer_) observer_->state({static_cast<int>(region_), directive, unit}, state_);
}

void DirectiveMachine::show_spills(RegionOps& ops) noexcept {
  ops.rewind();
  while (const unw_dyn_op_t* op = ops.next_op()) {
    const bool by_sp = op->tag == UNW_DYN_SPILL_SP_REL;
    const RegisterInfo* const reg = arch_.by_libunwind(op->reg);
    if ((!by_sp && op->tag != UNW_DYN_SPILL_FP_REL) || !reg || reg->column < 0) continue;
    const auto above_sp = by_sp ? std::optional(signed_value(*op)) : state_.slot_above_sp(reg->dwarf);
    observer_->spill({static_cast<int>(region_), static_cast<int>(ops.index()), unit_}, reg->dwarf, above_sp, state_);
  }
}

bool DirectiveMachine::find_regions() noexcept {
  RegionHeader found;
  for (Addr at = first_; at != 0; at = found.next) {
    if (region_count_ == k_max_regions) return fail({ErrorCode::e_cycle, 0, "region list too long or cyclic"});
    if (region_count_ < regions_.size()) regions_[region_count_] = at;
    if (const Status read = reader_.read_header(at, found); !read) return fail(read.error());
    ++region_count_;
  }
  return true;
}

Status DirectiveMachine::header(std::uint32_t region, RegionHeader& out) const noexcept {
  std::uint32_t i = std::min<std::uint32_t>(region, static_cast<std::uint32_t>(regions_.size() - 1));
  for (Addr at = regions_[i];; at = out.next, ++i) {
    if (const Status read = reader_.read_header(at, out); !read || i == region) return read;
    if (out.next == 0) return Error{ErrorCode::bad_structure, 0, "region list became shorter while it was read"};
  }
}

/// Finds the next region, after the one that was run.
bool DirectiveMachine::locate_region() noexcept {
  const std::int64_t end = current_.begin + current_.length;
  if (const Status read = reader_.read_header(current_.header.next, current_.header); !read) return fail(read.error());
  current_.index = region_ = region_count_ - regions_left_;
  --regions_left_;
  current_.begin = unit_ = end;
  current_.length = current_.header.length();
  if (current_.header.insn_count >= 0) return true;
  if (current_.header.next != 0)
    return fail({ErrorCode::e_neg, 0, "negative insn_count in a region that is not the last"});
  current_.begin = units_ - current_.length;
  return current_.begin >= end || fail({ErrorCode::e_overlap, 0, "regions are longer than the procedure"});
}

Status DirectiveMachine::run_to(std::int64_t x) noexcept {
  if (!failure_ && go_to(x)) return Done{};
  return *failure_;
}

bool DirectiveMachine::go_to(std::int64_t x) noexcept {
  if (stage_ == Stage::unknown) {
    if (!find_regions()) return false;
    regions_left_ = region_count_;
    current_.header.next = first_;
    holds_to_ = units_;
    show_state(-1, 0);
    stage_ = Stage::between_regions;
  }
  for (;;) {
    if (stage_ == Stage::between_regions) {
      if (regions_left_ == 0) return true;
      if (!locate_region()) return false;
      stage_ = Stage::before_region;
    }
    if (stage_ == Stage::before_region) {
      if (x < current_.begin) {
        holds_to_ = current_.begin;
        return true;
      }
      if (!enter_region()) return false;
      stage_ = Stage::in_region;
    }
    if (!run_region(x)) return false;
    if (x < current_.begin + current_.length) return true;
    if (!leave_region()) return false;
    stage_ = Stage::between_regions;
  }
}

bool DirectiveMachine::enter_region() noexcept {
  entry_ = state_;
  copied_ = aliased_ = false;
  pops_ = 0;
  unit_ = holds_from_ = current_.begin;
  if (const Status opened = ops_.open(current_.header); !opened) return fail(opened.error());
  const auto unknown = ops_.unknown_tag();
  if (unknown && !complain({ErrorCode::e_tag, 0, "unknown directive before STOP"}, *unknown)) return false;
  show_state(-1, current_.begin);
  has_group_ = ops_.next_group();
  return true;
}

bool DirectiveMachine::run_region(std::int64_t x) noexcept {
  holds_to_ = current_.begin + current_.length;
  alias_unit_ = std::min(x - current_.begin, current_.length);
  if (aliased_) state_.become_alias(alias_begin_ + static_cast<std::uint64_t>(alias_unit_) * arch_.unit);
  while (has_group_) {
    const std::int64_t takes_effect = current_.begin + ops_.when() + 1;
    if (x < takes_effect) {
      holds_to_ = takes_effect;
      break;
    }
    unit_ = holds_from_ = takes_effect;
    if (!run_group(ops_)) return false;
    show_state(static_cast<int>(ops_.index()), unit_);
    has_group_ = !aliased_ && ops_.next_group();
  }
  if (ops_.failure()) return fail(*ops_.failure());
  if (observer_) observer_->region_end(static_cast<int>(region_), current_.begin + current_.length, state_);
  return true;
}

bool DirectiveMachine::leave_region() noexcept {
  const std::int64_t end = unit_ = current_.begin + current_.length;
  if (!pop_states()) return false;
  holds_from_ = end;
  holds_to_ = units_;
  show_state(-1, end);
  return true;
}

bool DirectiveMachine::pop_states() noexcept {
  if (pops_ == 0) return true;
  if (pops_ == 1 && !copied_) {
    state_ = entry_;
    return true;
  }
  const Result<std::uint32_t> popped = find_popped(current_.index, pops_);
  if (popped) return rebuild({*popped, k_before_region});
  return popped.error().code == ErrorCode::e_pop ? complain(popped.error(), pop_directive_) : fail(popped.error());
}

[[gnu::always_inline]] inline unsigned DirectiveMachine::step_of(const unw_dyn_op_t& op) const noexcept {
  const bool on_sp = op.reg == sp_->libunwind;
  switch (op.tag) {
    case UNW_DYN_SAVE_REG:
      return op.val == static_cast<unw_word_t>(sp_->libunwind) ? reload_sp : on_sp ? set_fp : save;
    case UNW_DYN_SPILL_FP_REL:
    case UNW_DYN_SPILL_SP_REL:
      return save;
    case UNW_DYN_ADD:
      return on_sp ? add_sp : add;
    case UNW_DYN_POP_FRAMES:
      return pop_frames;
    case UNW_DYN_LABEL_STATE:
      return label;
    case UNW_DYN_COPY_STATE:
      return copy;
    case UNW_DYN_ALIAS:
      return alias;
    default:
      return none;
  }
}

bool DirectiveMachine::run_group(RegionOps& ops) noexcept {
  unsigned steps = 0, last = 0;
  bool in_order = true;
  ops.rewind();
  while (const unw_dyn_op_t* op = ops.next_op()) {
    const unsigned step = step_of(*op);
    in_order = in_order && step >= std::exchange(last, step);
    steps |= bit(step);
    if (step == alias) {
      // The row at every instruction is that of alias + (units after the ALIAS).
      alias_begin_ = op->val - static_cast<std::uint64_t>(ops.when() + 1) * arch_.unit;
      state_.become_alias(alias_begin_ + static_cast<std::uint64_t>(alias_unit_) * arch_.unit);
      aliased_ = true;
      pops_ = 0;
    }
  }
  if (ops.failure()) return fail(*ops.failure());
  if (steps & bit(alias)) return true;
  if ((steps & bit(copy)) && !rebuilding_ && !copy_label(ops)) return false;
  if ((steps & k_instruction) && !run_instruction(ops, steps, in_order)) return false;
  if ((steps & bit(label)) && !rebuilding_) remember_labels(ops);
  return true;
}

/// Runs the directives step by step. `in_order`: they are listed so, and one pass runs them all.
bool DirectiveMachine::run_instruction(RegionOps& ops, unsigned steps, bool in_order) noexcept {
  const std::optional<std::int64_t> old_sp_off = state_.sp_off();
  sp_directive_ = fp_directive_ = ops.index();
  RegNum fp_set = k_no_reg;
  FrameState::Anchor anchor;
  bool settled = false;
  const auto settle = [&] {
    if (std::exchange(settled, true)) return;
    if (steps & bit(set_fp)) fp_set = state_.fp();
    state_.settle(old_sp_off);
    anchor = state_.anchor();
  };
  for (unsigned left = steps & k_instruction; left != 0;) {
    const unsigned now = in_order ? left : left & -left;
    ops.rewind();
    while (const unw_dyn_op_t* op = ops.next_op()) {
      const unsigned step = step_of(*op);
      if ((now & bit(step)) == 0) continue;
      if (step >= save) settle();
      if (!run_one(*op, ops.index(), step, anchor)) return false;
    }
    if (ops.failure()) return fail(*ops.failure());
    left &= ~now;
  }
  settle();
  if (observer_ && !rebuilding_ && (steps & bit(save))) show_spills(ops);

  // A frame pointer that is set without being saved costs its caller's value only. A lost return address ends the walk.
  if (const Error* const fp = state_.judge_fp(fp_set); fp && (observer_ || fp_set == arch_.ra))
    if (!complain(*fp, fp_directive_)) return false;
  const Error* const sp = state_.judge_sp();
  const bool was_high = std::exchange(sp_high_, sp != nullptr);
  return !sp || was_high || complain(*sp, sp_directive_);
}

[[gnu::always_inline]] inline bool DirectiveMachine::run_one(const unw_dyn_op_t& op, std::uint32_t index, unsigned step,
                                                             const FrameState::Anchor& anchor) noexcept {
  if (step == set_fp) fp_directive_ = index;
  if (step == add_sp || step == reload_sp) sp_directive_ = index;
  if (step == pop_frames && !rebuilding_) pop_directive_ = index;
  const RegisterInfo* reg = sp_;
  if (step != add_sp && step != pop_frames) {
    reg = arch_.by_libunwind(op.reg);
    if (const char* const wrong = wrong_register(op, reg, arch_)) return complain({ErrorCode::e_reg, 0, wrong}, index);
  }
  const Error* const error = run_op(op, step, reg->dwarf, anchor);
  return !error || complain(*error, index);
}

[[gnu::always_inline]] inline const Error* DirectiveMachine::run_op(const unw_dyn_op_t& op, unsigned step, RegNum reg,
                                                                    const FrameState::Anchor& anchor) noexcept {
  const auto value_register = [&] { return arch_.by_libunwind(static_cast<int>(op.val))->dwarf; };
  switch (step) {
    case reload_sp:
      return state_.reload_sp(reg);
    case add_sp:
      return is_unknown(op) ? state_.lose_sp() : state_.add_sp(signed_value(op));
    case set_fp:
      return state_.set_fp(value_register());
    case add:
      return is_unknown(op) ? state_.lose(reg) : state_.add(reg, signed_value(op));
    case save:
      if (op.tag == UNW_DYN_SPILL_SP_REL) return state_.spill_sp(anchor, reg, signed_value(op));
      if (op.tag == UNW_DYN_SPILL_FP_REL) return state_.spill_fp(anchor, reg, signed_value(op));
      return state_.save(anchor, reg, value_register());
    default:
      if (signed_value(op) < 1) return &k_no_pop;
      pops_ = op.val;
      return state_.pop_frames();
  }
}

bool DirectiveMachine::copy_label(RegionOps& ops) noexcept {
  ops.rewind();
  while (const unw_dyn_op_t* op = ops.next_op()) {
    if (op->tag != UNW_DYN_COPY_STATE) continue;
    const auto is_known = [op](const auto& label) { return label && label->label == op->val; };
    if (is_known(first_label_) || is_known(latest_label_)) {
      state_ = (is_known(first_label_) ? first_label_ : latest_label_)->state;
    } else {
      const auto set = find_label(op->val, {region_, ops.when()});
      if (!set) return fail(set.error());
      if (!*set) {
        if (!complain(k_unknown_label, ops.index())) return false;
        continue;
      }
      if (!rebuild(**set)) return false;
    }
    copied_ = true;
    pops_ = 0;
  }
  return true;
}

/// Other labels are rebuilt when they are copied.
void DirectiveMachine::remember_labels(RegionOps& ops) noexcept {
  ops.rewind();
  while (const unw_dyn_op_t* op = ops.next_op()) {
    if (op->tag != UNW_DYN_LABEL_STATE) continue;
    const bool is_first = !first_label_ || first_label_->label == op->val;
    (is_first ? first_label_ : latest_label_) = Remembered{op->val, state_};
  }
}

Status DirectiveMachine::control(Point until, Control& out) noexcept {
  RegionHeader region;
  if (const Status read = header(until.region, region); !read) return read;
  RegionOps ops(reader_, budget_);
  if (const Status opened = ops.open(region); !opened) return opened;
  out = {};
  const std::int64_t alias_when = ops.alias_when().value_or(k_when_end);
  const bool aliased = ops.alias_when() && alias_when <= until.when;
  ops.rewind_list();
  while (const unw_dyn_op_t* op = ops.next_listed()) {
    const std::int64_t when = ops.listed_when();
    if (aliased && op->tag == UNW_DYN_ALIAS && when == alias_when)
      out.alias = op->val + static_cast<std::uint64_t>(region.length() - (when + 1)) * arch_.unit;
    if (aliased || when > until.when) continue;
    if (op->tag == UNW_DYN_COPY_STATE && when >= out.copy_when) {
      out.copy_when = when;
      out.copied_label = op->val;
    } else if (op->tag == UNW_DYN_POP_FRAMES && when >= out.pop_when && signed_value(*op) >= 1) {
      out.pop_when = when;
      out.pops = op->val;
    }
  }
  if (out.pop_when < out.copy_when) out.pops = 0;
  return ops.failure() ? Status(*ops.failure()) : Done{};
}

auto DirectiveMachine::find_label(unw_word_t wanted, Point before) noexcept -> Result<std::optional<Point>> {
  std::optional<Point> latest;
  RegionHeader region;
  region.next = first_;
  for (std::uint32_t k = 0; k <= before.region; ++k) {
    if (const Status read = reader_.read_header(region.next, region); !read) return read.error();
    RegionOps ops(reader_, budget_);
    if (const Status opened = ops.open(region); !opened) return opened.error();
    const std::int64_t end =
        std::min(ops.alias_when().value_or(k_when_end), k == before.region ? before.when : k_when_end);
    ops.rewind_list();
    while (const unw_dyn_op_t* op = ops.next_listed()) {
      if (op->tag != UNW_DYN_LABEL_STATE || op->val != wanted || ops.listed_when() >= end) continue;
      if (!latest || latest->region != k || latest->when < ops.listed_when()) latest = Point{k, ops.listed_when()};
    }
    if (ops.failure()) return *ops.failure();
  }
  return latest;
}

/// Finds the region whose entry state is the n-th from the top of the stack of region states at the end of `region`.
/// Every region pushes its entry state; COPY_STATE continues with the stack at its label.
Result<std::uint32_t> DirectiveMachine::find_popped(std::uint32_t region, std::uint64_t n) noexcept {
  Point at{region, k_when_end};
  for (;;) {
    if (n > k_max_regions) return k_too_many_pops;
    Control facts;
    if (const Status read = control(at, facts); !read) return read.error();
    if (!facts.alias && facts.copy_when != k_before_region) {
      const auto set = find_label(facts.copied_label, {at.region, facts.copy_when});
      if (!set) return set.error();
      if (!*set) return k_unknown_label;
      at = **set;
      continue;
    }
    if (n == 1) return at.region;
    if (at.region == 0) return k_too_many_pops;
    at = {at.region - 1, k_when_end};
    if (const Status read = control(at, facts); !read) return read.error();
    n += facts.pops - 1;
  }
}

/// Collects the stretches that lead to `point`, latest first, at most `limit` of them, and returns their number. If
/// there are more than fit, the earliest are kept, the i-th at i modulo the size.
Result<std::uint32_t> DirectiveMachine::collect(Point point, std::uint32_t limit, std::optional<Addr>& alias) noexcept {
  std::uint32_t n = 0;
  while (n < limit) {
    Control facts;
    if (point.when == k_before_region) {
      if (point.region == 0) break;
      point = {point.region - 1, k_when_end};
      if (const Status read = control(point, facts); !read) return read.error();
      if (facts.pops == 0) continue;
      const Result<std::uint32_t> popped = find_popped(point.region, facts.pops);
      if (!popped) return popped;
      point = {*popped, k_before_region};
      continue;
    }
    if (const Status read = control(point, facts); !read) return read.error();
    if (facts.alias) {
      alias = facts.alias;
      break;
    }
    const bool copied = facts.copy_when != k_before_region;
    stretches_[n++ % stretches_.size()] = {point.region, facts.copy_when, point.when};
    if (!copied) {
      point.when = k_before_region;
      continue;
    }
    const auto set = find_label(facts.copied_label, {point.region, facts.copy_when});
    if (!set) return set.error();
    if (!*set) return k_unknown_label;
    point = **set;
  }
  return n;
}

bool DirectiveMachine::rebuild(Point point) noexcept {
  std::optional<Addr> alias;
  const Result<std::uint32_t> all = collect(point, std::numeric_limits<std::uint32_t>::max(), alias);
  if (!all) return fail(all.error());
  state_ = FrameState(arch_);
  if (alias) state_.become_alias(*alias);
  const std::uint64_t pops = pops_;
  rebuilding_ = true;
  bool ran = true;
  for (std::uint32_t end = *all; ran && end > 0;) {
    const std::uint32_t kept = static_cast<std::uint32_t>(stretches_.size());
    const std::uint32_t begin = end > kept ? end - kept : 0;
    for (std::uint32_t i = end; ran && i-- > begin;) ran = run_stretch(stretches_[i % kept]);
    end = begin;
    if (!ran || end == 0) break;
    const Result<std::uint32_t> rest = collect(point, end, alias);
    if (!rest) ran = fail(rest.error());
  }
  rebuilding_ = false;
  pops_ = pops;
  return ran;
}

bool DirectiveMachine::run_stretch(const Stretch& stretch) noexcept {
  RegionHeader region;
  if (const Status read = header(stretch.region, region); !read) return fail(read.error());
  RegionOps ops(reader_, budget_);
  if (const Status opened = ops.open(region); !opened) return fail(opened.error());
  while (ops.next_group() && ops.when() <= stretch.to)
    if (ops.when() >= stretch.from && !run_group(ops)) return false;
  return !ops.failure() || fail(*ops.failure());
}

}  // namespace jitunwind
