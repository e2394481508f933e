#include "tests/directives/naive_directives.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace jitunwind::test {
namespace {

using Ops = std::vector<unw_dyn_op_t>;

struct Rule {
  enum class Kind { same, undefined, cfa, sp, reg } kind = Kind::same;
  std::int64_t value = 0;
  friend bool operator==(const Rule&, const Rule&) = default;
};

constexpr std::int64_t k_unknown = std::numeric_limits<std::int64_t>::min();
std::int64_t value_of(const unw_dyn_op_t& op) { return static_cast<std::int64_t>(op.val); }
std::int64_t sub(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

class State {
 public:
  State(const Arch& arch, unsigned other) : arch_(&arch), other_(other), sp_(arch.entry_cfa) {
    for (const RegisterInfo& r : arch.registers)
      if (r.preserved) rules_[r.dwarf] = {};
    rules_[arch.ra] = entry_ra();
  }

  /// Returns the number of frames of POP_FRAMES; 0 without that directive.
  std::uint64_t group(const Ops& ops);
  FrameRow row() const;

 private:
  struct Slot {
    std::int64_t at;
    std::optional<std::int64_t> off;
  };

  [[noreturn]] static void fail(ErrorCode code) { throw code; }
  Rule entry_ra() const { return arch_->ra_in_memory ? Rule{Rule::Kind::cfa, arch_->entry_ra} : Rule{}; }
  RegNum reg(std::int64_t libunwind) const {
    const RegisterInfo* info =
        libunwind < 0 || libunwind > 999 ? nullptr : arch_->by_libunwind(static_cast<int>(libunwind));
    if (!info) fail(ErrorCode::e_reg);
    return info->dwarf;
  }
  RegNum saved(RegNum r) const {
    const RegisterInfo& info = *arch_->by_dwarf(r);
    const bool is_pc = r == arch_->pc && r != arch_->ra;
    if (info.column < 0 || info.reg_class == RegClass::pseudo || r == arch_->sp || is_pc) fail(ErrorCode::e_reg);
    return r;
  }
  RegNum holder(RegNum r) const {
    if (arch_->by_dwarf(r)->reg_class == RegClass::pseudo || r == arch_->pc) fail(ErrorCode::e_reg);
    return r;
  }
  bool counts_as_preserved(RegNum r) const {
    return other_ & k_saved_is_kept ? rules_.count(r) != 0 : arch_->by_dwarf(r)->preserved;
  }
  void reload(RegNum from);
  void move_sp(std::int64_t value);
  void set_fp(RegNum fp);
  void move_other(RegNum r, std::int64_t value);
  void release(std::optional<std::int64_t> old);
  void save(const unw_dyn_op_t& op, const State& before);

  const Arch* arch_;
  unsigned other_;
  std::optional<std::int64_t> sp_;
  std::optional<RegNum> fp_;
  std::int64_t fp_off_ = 0;
  std::optional<Slot> slot_;
  std::map<RegNum, Rule> rules_;
  bool signed_ = false;
};

void State::reload(RegNum from) {
  if (from == fp_) {
    sp_ = fp_off_;
    if (!counts_as_preserved(from)) fp_.reset();
  } else if (from == arch_->sp && slot_) {
    sp_ = slot_->off;
    slot_.reset();
  } else {
    fail(ErrorCode::e_no_fp);
  }
}

void State::move_sp(std::int64_t value) {
  if (value == k_unknown) {
    sp_.reset();
    if (other_ & k_stale_places) return;
    slot_.reset();
    for (auto& [r, rule] : rules_)
      if (rule.kind == Rule::Kind::sp) rule = {Rule::Kind::undefined, 0};
    return;
  }
  if (sp_)
    sp_ = sub(*sp_, value);
  else
    for (auto& [r, rule] : rules_)
      if (rule.kind == Rule::Kind::sp) rule.value = sub(rule.value, value);
  if (slot_) slot_->at = sub(slot_->at, value);
}

void State::set_fp(RegNum fp) {
  const RegisterInfo& info = *arch_->by_dwarf(fp);
  if (info.column < 0 || info.reg_class != RegClass::general || fp == arch_->pc) fail(ErrorCode::e_reg);
  if (!sp_) fail(ErrorCode::e_fp_unknown);
  if ((other_ & k_strict_fp) && rules_.count(fp) && rules_[fp] == Rule{}) fail(ErrorCode::e_fp_clobber);
  fp_ = fp;
  fp_off_ = *sp_;
}

void State::move_other(RegNum r, std::int64_t value) {
  if (r == fp_) {
    if (value == k_unknown) return fp_.reset();
    fp_off_ = sub(fp_off_, value);
  } else if (arch_->sign_state != k_no_reg && r == arch_->sign_state) {
    signed_ ^= (value & 1) != 0;
  } else {
    fail(ErrorCode::e_add_reg);
  }
}

void State::release(std::optional<std::int64_t> old) {
  for (auto& [r, rule] : rules_) {
    const bool freed =
        rule.kind == Rule::Kind::cfa && rule.value < sub(0, *sp_) && (!old || rule.value >= sub(0, *old));
    const bool stale = !(other_ & k_stale_places) && rule.kind == Rule::Kind::sp && !old;
    if ((!freed && !stale) || (r == arch_->ra && rule == entry_ra())) continue;
    rule = {};
    if (r == fp_) fp_.reset();
  }
}

/// `before` has the SP and FP that offsets count from.
void State::save(const unw_dyn_op_t& op, const State& before) {
  const RegNum r = reg(op.reg);
  if (op.tag == UNW_DYN_SPILL_FP_REL) {
    saved(r);
    if (!before.fp_) fail(ErrorCode::e_no_fp);
    rules_[r] = {Rule::Kind::cfa, sub(value_of(op), before.fp_off_)};
  } else if (op.tag == UNW_DYN_SPILL_SP_REL && r == arch_->sp) {
    const auto off = before.fp_ ? std::optional(before.fp_off_) : before.sp_;
    slot_.reset();
    if (off || (other_ & k_unknown_copy)) slot_ = Slot{value_of(op), off};
    fp_.reset();
  } else if (op.tag == UNW_DYN_SPILL_SP_REL) {
    saved(r);
    rules_[r] = before.sp_ ? Rule{Rule::Kind::cfa, sub(value_of(op), *before.sp_)} : Rule{Rule::Kind::sp, value_of(op)};
  } else {
    const RegNum in = holder(reg(value_of(op)));
    rules_[saved(r)] = r == in ? Rule{} : Rule{Rule::Kind::reg, in};
    if (r == in && r == before.fp_) fp_.reset();
  }
}

std::uint64_t State::group(const Ops& ops) {
  const auto old = sp_;
  const auto is_sp = [&](std::int64_t number) { return number == arch_->by_dwarf(arch_->sp)->libunwind; };
  const auto each = [&](int tag, auto wanted, auto act) {
    for (const unw_dyn_op_t& op : ops)
      if (op.tag == tag && wanted(op)) act(op);
  };
  const auto from_sp = [&](const unw_dyn_op_t& op) { return is_sp(op.reg); };
  const auto not_sp = [&](const unw_dyn_op_t& op) { return !is_sp(op.reg); };
  const auto to_sp = [&](const unw_dyn_op_t& op) { return is_sp(value_of(op)); };
  each(UNW_DYN_SAVE_REG, to_sp, [&](const unw_dyn_op_t& op) {
    const RegNum r = reg(op.reg);
    reload(r == arch_->sp ? r : saved(r));
  });
  each(UNW_DYN_ADD, from_sp, [&](const unw_dyn_op_t& op) { move_sp(value_of(op)); });
  std::optional<RegNum> set;
  each(
      UNW_DYN_SAVE_REG, [&](const unw_dyn_op_t& op) { return from_sp(op) && !to_sp(op); },
      [&](const unw_dyn_op_t& op) { set_fp(reg(value_of(op))), set = fp_; });
  each(UNW_DYN_ADD, not_sp, [&](const unw_dyn_op_t& op) { move_other(reg(op.reg), value_of(op)); });
  if (sp_ && (!old || *sp_ < *old)) release(old);

  const State at_saves = *this;
  for (const unw_dyn_op_t& op : ops) {
    const bool spill = op.tag == UNW_DYN_SPILL_SP_REL || op.tag == UNW_DYN_SPILL_FP_REL;
    const bool in_reg = op.tag == UNW_DYN_SAVE_REG && !from_sp(op) && !to_sp(op);
    if (spill || in_reg) save(op, other_ & k_order_of_saves ? State(*this) : at_saves);
  }
  std::uint64_t pops = 0;
  for (const unw_dyn_op_t& op : ops) {
    if (op.tag != UNW_DYN_POP_FRAMES) continue;
    if (value_of(op) < 1) fail(ErrorCode::e_pop);
    const auto before = sp_;
    sp_ = arch_->entry_cfa;
    slot_.reset();
    fp_.reset();
    if (!before || *sp_ < *before) release(before);
    pops = op.val;
  }
  if (!(other_ & k_strict_fp) && set && set == fp_ && (arch_->by_dwarf(*set)->preserved || *set == arch_->ra) &&
      rules_[*set] == Rule{}) {
    if (*set == arch_->ra) fail(ErrorCode::e_fp_clobber);
    rules_[*set] = {Rule::Kind::undefined, 0};
  }
  if (sp_ && *sp_ < arch_->entry_cfa && rules_[arch_->ra] == entry_ra()) fail(ErrorCode::e_sp_high);
  return pops;
}

FrameRow State::row() const {
  FrameRow row;
  row.ra = arch_->ra;
  if (fp_)
    row.cfa = CfaRule::at(*fp_, fp_off_);
  else if (slot_)
    row.cfa = CfaRule::deref(arch_->sp, slot_->at, slot_->off.value_or(0));
  else if (sp_)
    row.cfa = CfaRule::at(arch_->sp, *sp_);
  else
    fail(ErrorCode::e_sp_lost);
  for (const auto& [r, rule] : rules_) {
    const RegRule made = rule.kind == Rule::Kind::same        ? RegRule{}
                         : rule.kind == Rule::Kind::undefined ? RegRule::undefined()
                         : rule.kind == Rule::Kind::cfa       ? RegRule::at_cfa(rule.value)
                         : rule.kind == Rule::Kind::sp        ? RegRule::at_reg(arch_->sp, rule.value)
                                                              : RegRule::in_reg(static_cast<RegNum>(rule.value));
    if (!row.set(r, made)) fail(ErrorCode::row_too_wide);
  }
  if (signed_ && !row.set(arch_->sign_state, RegRule::constant(1))) fail(ErrorCode::row_too_wide);
  return row;
}

struct Walk {
  State cur;
  std::vector<State> stack;
  std::map<unw_word_t, std::pair<State, std::vector<State>>> labels;

  void restore(unw_word_t label) {
    const auto found = labels.find(label);
    if (found == labels.end()) throw ErrorCode::e_label;
    cur = found->second.first;
    stack.assign(found->second.second.begin(), found->second.second.end());
  }

  /// Applies the directives of a region that are in force behind `passed` instructions. Returns the number of frames to
  /// pop at its end.
  std::uint64_t region(const rows::CaseRegion& region, std::int64_t length, std::int64_t passed) {
    std::map<std::int64_t, Ops> groups;
    std::int64_t latest = -1;
    for (const unw_dyn_op_t& op : region.ops) {
      if (op.tag == UNW_DYN_STOP) break;
      if (op.tag < 0 || op.tag > UNW_DYN_ALIAS) throw ErrorCode::e_tag;
      std::int64_t when = op.when < 0 || length == 0 ? -1 : std::min<std::int64_t>(op.when, length - 1);
      if (op.tag == UNW_DYN_LABEL_STATE && op.when < 0) when = latest;
      groups[when].push_back(op);
      latest = std::max(latest, when);
    }
    std::uint64_t pops = 0;
    for (const auto& [when, ops] : groups) {
      if (when >= passed) break;
      for (const unw_dyn_op_t& op : ops)
        if (op.tag == UNW_DYN_COPY_STATE) restore(op.val), pops = 0;
      if (const std::uint64_t n = cur.group(ops)) pops = n;
      for (const unw_dyn_op_t& op : ops)
        if (op.tag == UNW_DYN_LABEL_STATE) labels.insert_or_assign(op.val, std::pair(cur, stack));
    }
    return pops;
  }
};

FrameRow walk(const Arch& arch, std::uint64_t size, const std::vector<rows::CaseRegion>& regions, std::int64_t x,
              unsigned other) {
  Walk w{State(arch, other), {}, {}};
  std::int64_t end = 0;
  const auto units = static_cast<std::int64_t>(size / arch.unit);
  for (std::size_t k = 0; k < regions.size(); ++k) {
    std::int64_t begin = end, length = regions[k].insn_count;
    if (length < 0) {
      if (k + 1 != regions.size()) throw ErrorCode::e_neg;
      length = -length;
      begin = units - length;
      if (begin < end) throw ErrorCode::e_overlap;
    }
    if (x < begin) break;
    w.stack.push_back(w.cur);
    const std::uint64_t pops = w.region(regions[k], length, x - begin);
    end = begin + length;
    if (x < end) break;
    if (pops > w.stack.size()) throw ErrorCode::e_pop;
    for (std::uint64_t i = 0; i < pops; ++i) {
      w.cur = w.stack.back();
      w.stack.pop_back();
    }
  }
  return w.cur.row();
}

}  // namespace

NaiveAnswer naive_row(const Arch& arch, std::uint64_t size, const std::vector<rows::CaseRegion>& regions,
                      std::uint64_t offset, bool of_call, unsigned other) {
  const std::uint64_t at = of_call ? offset - 1 : offset;
  if (size == 0 || size % arch.unit != 0 || at >= size) return {ErrorCode::e_range, {}};
  try {
    return {ErrorCode::unspecified, walk(arch, size, regions, static_cast<std::int64_t>(at / arch.unit), other)};
  } catch (ErrorCode code) {
    return {code, {}};
  }
}

}  // namespace jitunwind::test
