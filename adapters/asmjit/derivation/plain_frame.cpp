#include "jitunwind/adapters/asmjit/derivation/plain_frame_p.h"

namespace jitunwind::derivation {
PlainFrame::PlainFrame(const Arch& arch, RegSet preserved) noexcept
    : sp_(arch.sp),
      fp_(arch.fp),
      entry_sp_(arch.entry_cfa),
      sp_and_fp_(set_of(sp_) | set_of(fp_)),
      preserved_(preserved & ~set_of(arch.sp)),
      facts_{entry_sp_},
      intact_(preserved_) {}

bool PlainFrame::pop_other(RegNum reg, std::int32_t when, MarkRecorder& marks) {
  const Effect effect{.kind = Effect::Kind::pop, .reg = reg, .value = k_slot};
  return apply({&effect, 1}, when, marks);
}

bool PlainFrame::raise_sp(std::int64_t by, std::int32_t when, MarkRecorder& marks) {
  if (!move_sp(distance(sp_, by))) return false;
  if (by != 0) marks.directive(when, DraftDirective::add(sp_, by));
  return true;
}

bool PlainFrame::apply(std::span<const Effect> effects, std::int32_t when, MarkRecorder& marks) {
  const Before before{facts_.sp, facts_.fp, facts_.saved};
  sp_from_fp_ = false;
  for (const Effect& effect : effects)
    if (!apply(effect)) return false;
  if (before.sp != facts_.sp || before.fp != facts_.fp || before.saved != facts_.saved || sp_from_fp_)
    say_changes(before, when, marks);
  return true;
}

bool PlainFrame::apply(const Effect& e) {
  using Kind = Effect::Kind;
  switch (e.kind) {
    case Kind::clobber:
      return overwrite(e.set);
    case Kind::push:
    case Kind::push_memory: {
      const bool saves = e.kind == Kind::push && e.value == k_slot && keeps(e.reg);
      if (!move_sp(facts_.sp + (e.kind == Kind::push ? e.value : k_slot))) return false;
      if (saves) save(e.reg, facts_.sp);
      return true;
    }
    case Kind::pop:
      return pop(e);
    case Kind::copy:
      return copy(e);
    case Kind::exchange:
      copies_ |= has(copies_, e.reg) || has(copies_, e.base) ? set_of(e.reg) | set_of(e.base) : 0;
      return overwrite(set_of(e.reg) | set_of(e.base));
    case Kind::store:
      return store(e);
    case Kind::load:
      return load(e);
    case Kind::address_of:
      return overwrite(set_of(e.reg));
    case Kind::call:
    case Kind::ret:
      return e.value == 0;  // no arguments are popped
    case Kind::jump_indirect:
      return e.value < 0;  // its targets are not known here
    case Kind::compare:
    case Kind::jump:
    case Kind::branch:
    case Kind::jump_elsewhere:
    case Kind::branch_elsewhere:
    case Kind::trap:
      return true;
    case Kind::push_code:
    case Kind::lower_unknown:
    case Kind::raise_unknown:
    case Kind::sp_unknown:
    case Kind::cannot_return:
      return false;
  }
  return false;
}

/// Slots below SP end. The registers must have their values again, as the deallocation rule has it.
bool PlainFrame::move_sp(std::int64_t distance) {
  if (distance < entry_sp_ || distance > k_largest_frame) return false;
  const bool lowers = distance >= facts_.sp;
  facts_.sp = static_cast<std::int32_t>(distance);
  if (lowers) return true;
  for (RegSet left = facts_.saved; left != 0; left &= left - 1) {
    const RegNum reg = first_of(left);
    if (facts_.slots[reg] <= facts_.sp) continue;
    if (!has(intact_, reg)) return false;
    forget_slot(reg);
  }
  return true;
}

bool PlainFrame::overwrite(RegSet registers) {
  const RegSet needed = set_of(sp_) | (facts_.fp != 0 ? set_of(fp_) : 0) | (preserved_ & ~facts_.saved);
  if ((registers & needed) != 0) return false;
  intact_ &= ~registers;
  return true;
}

bool PlainFrame::pop(const Effect& e) {
  if (e.reg != k_no_reg) {
    const bool is_own = e.value == k_slot && keeps(e.reg) && facts_.slots[e.reg] == facts_.sp;
    if (is_own)
      intact_ |= set_of(e.reg);
    else if (!overwrite(set_of(e.reg)))
      return false;
  }
  return move_sp(facts_.sp - e.value);
}

std::int64_t PlainFrame::distance(RegNum reg, std::int64_t displacement) const noexcept {
  if (displacement > k_largest_frame || displacement < -k_largest_frame) return 0;
  if (reg == sp_) return facts_.sp - displacement;
  return reg == fp_ && facts_.fp != 0 ? facts_.fp - displacement : 0;
}

bool PlainFrame::copy(const Effect& e) {
  const bool of_frame = e.base == sp_ || (e.base == fp_ && facts_.fp != 0);
  if (e.reg == sp_) {
    sp_from_fp_ |= e.base != sp_;
    return of_frame && move_sp(distance(e.base, e.value));
  }
  if (e.reg == e.base && e.value == 0) return true;
  if (e.reg == fp_ && e.base == sp_ && facts_.fp == 0 && has(facts_.saved, fp_)) {
    facts_.fp = static_cast<std::int32_t>(distance(sp_, e.value));
    intact_ &= ~set_of(fp_);
    return facts_.fp != 0;
  }
  if (!overwrite(set_of(e.reg))) return false;
  if (of_frame || has(copies_, e.base)) copies_ |= set_of(e.reg);
  return true;
}

bool PlainFrame::store(const Effect& e) {
  if (has(copies_, e.base)) return false;
  const std::int64_t begin = distance(e.base, e.value), end = begin - e.size;
  // Stores through other pointers are not tracked, see FrameState.
  if (begin <= 0) return true;
  const auto meets = [&](std::int64_t slot) { return begin > slot - k_slot && slot > end; };
  if (meets(entry_sp_)) return false;
  for (RegSet left = facts_.saved; left != 0; left &= left - 1)
    if (meets(facts_.slots[first_of(left)])) return false;
  if (keeps(e.reg) && e.size == k_slot && has(intact_, e.reg) && begin <= facts_.sp) save(e.reg, begin);
  return true;
}

bool PlainFrame::load(const Effect& e) {
  if (distance(e.base, e.value) == entry_sp_) return false;  // the return address: it may be returned to
  const bool is_own = keeps(e.reg) && has(facts_.saved, e.reg) && distance(e.base, e.value) == facts_.slots[e.reg];
  if (!is_own) return overwrite(set_of(e.reg));
  intact_ |= set_of(e.reg);
  return e.reg != fp_ || facts_.fp == 0;
}

/// Records the directives of one instruction, which are executed in the order of rule G.
void PlainFrame::say_changes(const Before& before, std::int32_t when, MarkRecorder& marks) const {
  const auto say = [&](const DraftDirective& d) { marks.directive(when, d); };
  if (sp_from_fp_) say(DraftDirective::save_reg(fp_, sp_));
  if (const std::int32_t sp = sp_from_fp_ ? before.fp : before.sp; sp != facts_.sp)
    say(DraftDirective::add(sp_, sp - facts_.sp));
  if (facts_.fp != 0 && facts_.fp != before.fp) {
    say(DraftDirective::save_reg(sp_, fp_));
    if (facts_.fp != facts_.sp) say(DraftDirective::add(fp_, facts_.sp - facts_.fp));
  }
  for (RegSet left = facts_.saved & ~before.saved; left != 0; left &= left - 1)
    say(DraftDirective::spill_sp_rel(first_of(left), facts_.sp - facts_.slots[first_of(left)]));
}

}  // namespace jitunwind::derivation
