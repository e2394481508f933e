#include "jitunwind/builders/draft/draft_record_p.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace jitunwind {
namespace {

/// No stack is so large: distances beyond are as good as unknown, and all others can be added and negated.
constexpr std::int64_t k_farthest = std::int64_t{1} << 60;

std::optional<std::int64_t> difference(std::optional<std::int64_t> from, std::int64_t value) {
  std::int64_t result = 0;
  const bool is_near = from && !__builtin_sub_overflow(*from, value, &result) && result < k_farthest;
  return is_near && result > -k_farthest ? std::optional(result) : std::nullopt;
}

}  // namespace

IdiomCheck::IdiomCheck(const DraftRecord& draft) : draft_(draft), arch_(*draft.arch) { state_.depth = arch_.entry_cfa; }

std::vector<Finding> IdiomCheck::run() && {
  check_bytes();
  const bool only_idioms = draft_.regions.size() == 1 && !draft_.regions[0].insn_count &&
                           std::ranges::all_of(draft_.regions[0].directives,
                                               [](const Placed& p) { return p.said != 0 || p.automatic_label; });
  if (findings_.empty() && only_idioms) follow(draft_.regions[0]);
  return std::move(findings_);
}

const char* IdiomCheck::name_of(RegNum reg) const {
  const RegisterInfo* const info = arch_.by_dwarf(reg);
  return info ? info->name : "?";
}

void IdiomCheck::refuse(ErrorCode code, std::uint32_t said, const std::string& reason) {
  findings_.push_back(finding_of(text(said), code, reason, draft_.said[said - 1].at.begin));
}

/// Offset in `at` from the start. Offsets from the end of a procedure of unknown size come after all others.
std::int64_t IdiomCheck::place(const Instruction& at, std::int64_t offset) const {
  constexpr std::int64_t k_any_end = std::int64_t{1} << 40;
  return at.from_end() ? offset + (draft_.size ? static_cast<std::int64_t>(*draft_.size) : k_any_end) : offset;
}

void IdiomCheck::check_bytes() {
  struct Bytes {
    std::int64_t begin, end;
    std::uint32_t said;
  };
  std::vector<Bytes> all;
  all.reserve(draft_.said.size());
  for (const auto& region : draft_.regions) {
    if (region.insn_count == 0) continue;  // instructions elsewhere
    for (const Placed& p : region.directives)
      if (p.said != 0 && !p.automatic_label && (all.empty() || all.back().said != p.said))
        all.push_back({place(*p.at, p.at->begin), place(*p.at, p.at->end), p.said});
  }
  sort_by(all, &Bytes::begin);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].begin < all[i - 1].end && all[i].begin < all[i].end)
      refuse(ErrorCode::e_same_bytes, all[i].said, "these bytes are those of " + text(all[i - 1].said));
}

void IdiomCheck::follow(const DraftRecord::Region& region) {
  std::vector<const Placed*> order;
  order.reserve(region.directives.size());
  for (const Placed& p : region.directives) order.push_back(&p);
  // DraftLayout uses the same order: a label follows the instruction that was named before it.
  sort_by(order, [this](const Placed* p) { return p->at ? place(*p->at, p->at->end) : 0; });
  calls_ = draft_.calls;
  sort_by(calls_, [this](const Instruction& call) { return place(call, call.end); });
  for (std::size_t i = 0, end = 0; i < order.size(); i = end) {
    end = i + 1;
    const Placed& p = *order[i];
    if (p.at) check_calls_up_to(place(*p.at, p.at->begin));
    if (!p.automatic_label) {
      while (end < order.size() && order[end]->said == p.said && !order[end]->automatic_label) ++end;
      follow_instruction(std::span(order).subspan(i, end - i));
    } else if (p.directive.tag == UNW_DYN_LABEL_STATE) {
      remembered_.emplace_back(p.directive.value, state_);
    } else if (const auto known =
                   std::ranges::find(remembered_, p.directive.value, &decltype(remembered_)::value_type::first);
               known != remembered_.end()) {
      check_left(p.said);
      state_ = known->second;
    }
  }
  check_calls_up_to(INT64_MAX);
}

/// A call keeps preserved registers only.
void IdiomCheck::check_calls_up_to(std::int64_t end) {
  for (; next_call_ < calls_.size() && place(calls_[next_call_], calls_[next_call_].end) <= end; ++next_call_) {
    const Instruction& call = calls_[next_call_];
    for (const Saved& saved : state_.saved)
      if (saved.in != k_no_reg && !is_preserved(saved.in) && saved.reg != arch_.ra)
        refuse(ErrorCode::e_reg_lost, saved.said,
               std::string(name_of(saved.in)) + " is not kept by the call in {" + std::to_string(call.begin) + ", " +
                   std::to_string(call.end) + "}");
  }
}

/// docs/directives.md "When a directive takes effect", rule G.
void IdiomCheck::follow_instruction(std::span<const Placed* const> directives) {
  const std::uint32_t said = directives.front()->said;
  const std::optional<std::int64_t> before = state_.depth;
  const std::string_view name = draft_.said[said - 1].idiom.name;
  if (name == "pop")
    check_pop(said);
  else if (name.starts_with("reload"))
    check_reload(said);
  else if (name == "pop_return_address")
    check_return_address(said);
  move_sp(directives);
  release(before, said);
  for (const Placed* p : directives) save(*p);
}

void IdiomCheck::move_sp(std::span<const Placed* const> directives) {
  for (const Placed* p : directives)
    if (p->directive.tag == UNW_DYN_SAVE_REG && p->directive.saved_in == arch_.sp)
      state_.depth = p->directive.reg == state_.fp ? state_.fp_depth : std::nullopt;
  for (const Placed* p : directives) {
    const DraftDirective& d = p->directive;
    if (d.tag != UNW_DYN_ADD || d.reg != arch_.sp) continue;
    state_.depth = d.value == k_unknown_distance ? std::nullopt : difference(state_.depth, d.value);
  }
  for (const Placed* p : directives) {
    const DraftDirective& d = p->directive;
    if (d.tag == UNW_DYN_SAVE_REG && d.reg == arch_.sp && d.saved_in != arch_.sp) {
      state_.fp = d.saved_in;
      state_.fp_depth = state_.depth;
    } else if (d.tag == UNW_DYN_ADD && d.reg == state_.fp) {
      state_.fp_depth = difference(state_.fp_depth, d.value);
    }
  }
}

const IdiomCheck::Saved* IdiomCheck::saved_at(std::int64_t offset) const {
  const auto found = std::ranges::find(state_.saved, std::optional(offset), &Saved::offset);
  return found == state_.saved.end() ? nullptr : &*found;
}

void IdiomCheck::check_pop(std::uint32_t said) {
  const RegNum reg = draft_.said[said - 1].idiom.regs[0];
  if (reg == k_no_reg || !state_.depth) return;
  const Saved* const there = saved_at(-*state_.depth);
  if (there && there->reg != reg)
    return refuse(ErrorCode::e_pop_reg, said,
                  std::string("what is there was saved by ") + text(there->said) + "; if " + name_of(there->reg) +
                      " has its value again, say so by reload()");
  const bool kept = std::ranges::count(state_.saved, reg, &Saved::reg) != 0;
  if (!there && !kept && is_preserved(reg)) refuse(ErrorCode::e_pop_reg, said, not_saved(reg));
}

bool IdiomCheck::is_preserved(RegNum reg) const {
  const RegisterInfo* const info = arch_.by_dwarf(reg);
  return info && info->preserved;
}

std::string IdiomCheck::not_saved(RegNum reg) const {
  const auto before = std::ranges::find(state_.restored, reg, &Restored::reg);
  if (before == state_.restored.end()) return std::string(name_of(reg)) + " was not saved";
  if (before->with_slot)
    return std::string(name_of(reg)) + " counts as given back since " + text(before->said) +
           ", which releases its slot; say by row_at() that it is read from below SP" + k_early_return_hint;
  return std::string(name_of(reg)) + " has its value again since " + text(before->said) + k_early_return_hint;
}

void IdiomCheck::check_reload(std::uint32_t said) {
  for (const RegNum reg : draft_.said[said - 1].idiom.regs)
    if (reg != k_no_reg && std::ranges::count(state_.saved, reg, &Saved::reg) == 0)
      refuse(ErrorCode::e_pop_reg, said, not_saved(reg));
}

void IdiomCheck::check_return_address(std::uint32_t said) {
  if (!state_.depth) return;
  const Saved* const there = saved_at(-*state_.depth);
  if (*state_.depth != arch_.entry_cfa && (there == nullptr || there->reg != arch_.ra))
    refuse(ErrorCode::e_ra_lost, said,
           "the return address is " + std::to_string(*state_.depth - arch_.entry_cfa) + " bytes above SP");
}

/// SP is above its value at entry when the return address was popped.
void IdiomCheck::check_left(std::uint32_t said) {
  const std::int64_t allocated = state_.depth ? *state_.depth - arch_.entry_cfa : 0;
  if (allocated > 0 && !draft_.ends_without_return)
    refuse(ErrorCode::w_unbalanced, said,
           "leaves with " + std::to_string(allocated) +
               " bytes of the frame still allocated: is a pop or deallocate missing? If it is a jump that keeps the "
               "frame, say ends_without_return()");
}

/// The deallocation rule: slots between the old SP and the new one are free. Slots below both are in the red zone and
/// stay.
void IdiomCheck::release(std::optional<std::int64_t> before, std::uint32_t said) {
  if (!state_.depth || (before && *state_.depth >= *before)) return;
  const auto is_free = [&](const Saved& saved) {
    return saved.offset && *saved.offset < -*state_.depth && (!before || *saved.offset >= -*before);
  };
  for (const Saved& saved : state_.saved)
    if (is_free(saved) && saved.reg == arch_.ra && arch_.ra_in_memory)
      refuse(
          ErrorCode::e_ra_lost, said,
          "takes away the return address that " + text(saved.said) + " saved: use pop_return_address(), or push(at)");
  for (const Saved& saved : state_.saved)
    if (is_free(saved)) restore(saved, said, std::string_view(draft_.said[said - 1].idiom.name) != "pop");
  std::erase_if(state_.saved, is_free);
}

void IdiomCheck::save(const Placed& placed) {
  const DraftDirective& d = placed.directive;
  const bool at_sp = d.tag == UNW_DYN_SPILL_SP_REL;
  if (d.reg == arch_.sp) return;
  if (at_sp || d.tag == UNW_DYN_SPILL_FP_REL) {
    const auto below_cfa = difference(at_sp ? state_.depth : state_.fp_depth, d.value);
    return save_at(d.reg, below_cfa ? std::optional(-*below_cfa) : std::nullopt, placed.said);
  }
  if (d.tag != UNW_DYN_SAVE_REG || d.saved_in == arch_.sp) return;
  move(d, placed.said);
}

void IdiomCheck::move(const DraftDirective& d, std::uint32_t said) {
  for (const Saved& saved : state_.saved)
    if (saved.reg == d.reg && d.saved_in == d.reg) restore(saved, said);
  std::erase_if(state_.saved, [&](const Saved& saved) { return saved.reg == d.reg; });
  if (d.saved_in == d.reg) return;
  if (is_preserved(d.saved_in) && std::ranges::count(state_.saved, d.saved_in, &Saved::reg) == 0)
    refuse(ErrorCode::e_reg_lost, said, std::string(name_of(d.saved_in)) + " is overwritten before it is saved");
  state_.saved.push_back({d.reg, said, std::nullopt, d.saved_in});
}

void IdiomCheck::restore(const Saved& saved, std::uint32_t said, bool with_slot) {
  std::erase_if(state_.restored, [&](const Restored& before) { return before.reg == saved.reg; });
  state_.restored.push_back({saved.reg, said, with_slot});
}

void IdiomCheck::save_at(RegNum reg, std::optional<std::int64_t> offset, std::uint32_t said) {
  for (const Saved& saved : state_.saved) {
    if (saved.reg == reg && saved.said != said)
      return refuse(ErrorCode::e_slot_twice, said,
                    std::string(name_of(reg)) + " was saved already, by " + text(saved.said) +
                        "; for any other value of it use push(at) or say nothing");
    if (saved.reg != reg && saved.offset && offset && *saved.offset < *offset + arch_.word_size &&
        *offset < *saved.offset + arch_.word_size)
      return refuse(ErrorCode::e_slot_twice, said,
                    std::string(name_of(saved.reg)) + " is in this slot, by " + text(saved.said));
  }
  state_.saved.push_back({reg, said, offset, k_no_reg});
}

}  // namespace jitunwind
