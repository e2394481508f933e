
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "jitunwind/builders/draft/draft_record_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind {
namespace {

std::string offset_text(std::int64_t offset) {
  char buffer[32];
  if (offset < 0)
    std::snprintf(buffer, sizeof buffer, "end-%" PRIx64, -static_cast<std::uint64_t>(offset));
  else
    std::snprintf(buffer, sizeof buffer, "+%" PRIx64, static_cast<std::uint64_t>(offset));
  return buffer;
}

bool is_label(int tag) { return tag == UNW_DYN_LABEL_STATE || tag == UNW_DYN_COPY_STATE; }

}  // namespace

DraftLayout::DraftLayout(const DraftRecord& draft) : arch_(*draft.arch), said_(draft.said) {
  if (draft.size) size_ = static_cast<std::int64_t>(*draft.size);
  for (const auto& region : draft.regions)
    for (const Placed& p : region.directives) {
      pops_frames_ |= (p.raw ? int{p.raw->tag} : int{p.directive.tag}) == UNW_DYN_POP_FRAMES;
      if (p.raw && is_label(p.raw->tag)) labels_in_use_.insert(p.raw->val);
      if (!p.raw && !p.automatic_label && is_label(p.directive.tag))
        labels_in_use_.insert(static_cast<unw_word_t>(p.directive.value));
    }
  for (const auto& region : draft.regions) region.insn_count ? add_explicit(region) : add_automatic(region);
}

void DraftLayout::add_explicit(const DraftRecord::Region& region) {
  const std::int64_t count = *region.insn_count;
  std::vector<const Placed*> directives;
  for (const Placed& p : region.directives) directives.push_back(&p);
  add({count < 0 ? count : next_start_, count}, std::move(directives));
}

/// Begin of the directives that are counted from the end, in units (negative). The given offsets decide. If the size is
/// known, it is the first instruction that releases stack, provided that every directive can be moved.
std::optional<std::int64_t> DraftLayout::tail_begin(const DraftRecord::Region& region) const {
  if (size_ && region.directives.size() > k_max_ops) return std::nullopt;  // a region at the end cannot be split
  std::int64_t begin = 0;
  bool movable = size_.has_value();
  for (const Placed& p : region.directives) {
    if (p.at && p.at->from_end()) begin = std::min(begin, p.at->begin);
    if (!p.at || is_label(p.directive.tag)) movable = false;
  }
  if (begin < 0) return begin / arch_.unit;
  if (!movable) return std::nullopt;

  std::optional<std::int64_t> first;
  for (const Placed& p : region.directives)
    if (p.directive.releases_stack(arch_)) first = std::min(first.value_or(p.at->begin), p.at->begin);
  const bool anything_before =
      first && std::ranges::any_of(region.directives, [&](const Placed& p) { return p.at->begin < *first; });
  if (!anything_before || *first >= *size_ || *size_ - *first > INT32_MAX) return std::nullopt;
  return (*first - *size_) / arch_.unit;
}

std::optional<std::int64_t> DraftLayout::end_unit(const Placed& p) const {
  if (!p.at) return p.raw ? std::optional<std::int64_t>(p.raw->when + std::int64_t{1}) : p.when + std::int64_t{1};
  return p.at->from_end() ? std::nullopt : std::optional((p.at->end + arch_.unit - 1) / arch_.unit);
}

/// Offset in `at`, counted from the end where the size is known; else the offset unchanged, which is not negative.
std::int64_t DraftLayout::from_end(std::int64_t offset, const Instruction& at) const {
  return at.from_end() || !size_ ? offset : offset - *size_;
}

void DraftLayout::add_automatic(const DraftRecord::Region& region) {
  const std::optional<std::int64_t> tail = tail_begin(region);
  std::vector<const Placed*> head_directives;
  std::vector<const Placed*> tail_directives;
  head_directives.reserve(region.directives.size());
  std::int64_t head_end = next_start_;
  bool whens_given = false;
  for (const Placed& p : region.directives) {
    if (tail && p.at && from_end(p.at->begin, *p.at) >= *tail * arch_.unit && from_end(p.at->begin, *p.at) < 0) {
      tail_directives.push_back(&p);
      continue;
    }
    head_directives.push_back(&p);
    if (!p.at && (p.raw || !p.automatic_label)) whens_given = true;
    if (const auto end = end_unit(p)) head_end = std::max(head_end, *end + (p.at ? 0 : next_start_));
  }
  const auto in_order = [&](std::vector<const Placed*>& directives) {
    // Idioms may come in any order. Directives keep theirs, because a label without `when` depends on it.
    if (!whens_given) sort_by(directives, [](const Placed* p) { return p->at ? p->at->end : INT64_MIN; });
  };
  in_order(head_directives);
  sort_by(tail_directives, [&](const Placed* p) { return from_end(p->at->end, *p->at); });

  if (!tail && size_ && *size_ / arch_.unit <= INT32_MAX) head_end = std::max(head_end, *size_ / arch_.unit);
  head_end = std::min(head_end, next_start_ + INT32_MAX);
  if (!head_directives.empty()) add({next_start_, head_end - next_start_}, std::move(head_directives));
  if (tail) add({*tail, *tail}, std::move(tail_directives));
}

void DraftLayout::add(const Extent& extent, std::vector<const Placed*> directives) {
  RegionSpec& spec = regions.emplace_back();
  spec.insn_count = static_cast<std::int32_t>(extent.count);
  spec.ops.reserve(directives.size());
  spec.said.reserve(directives.size());
  for (const Placed* p : directives) {
    placing_ = p;
    const std::int32_t when = place(*p, extent);
    spec.ops.push_back(encode(*p, when));
    spec.said.push_back(p->said);
  }
  if (spec.ops.size() > k_max_ops) split_last();
  next_start_ = extent.from_end() ? next_start_ : next_start_ + extent.count;
}

/// Splits the last region, since the number of directives in a region is limited. The parts together mean the same. The
/// region stays whole if it cannot be split between instructions or if the draft has POP_FRAMES, which counts regions.
void DraftLayout::split_last() {
  constexpr std::size_t k_enough = k_max_ops / 2;
  const RegionSpec whole = std::move(regions.back());
  std::vector<RegionSpec> parts(1);
  std::int32_t start = 0;
  std::int32_t latest = -1;
  bool can_split = whole.insn_count > 0 && !pops_frames_;
  for (std::size_t i = 0; i < whole.ops.size(); ++i) {
    unw_dyn_op_t op = whole.ops[i];
    if (op.tag == UNW_DYN_LABEL_STATE && op.when < 0) op.when = latest;
    can_split &= op.when >= latest && op.when < whole.insn_count && op.tag != UNW_DYN_STOP && op.tag != UNW_DYN_ALIAS;
    if (parts.back().ops.size() >= k_enough && op.when > latest) {
      parts.back().insn_count = latest + 1 - start;
      start = latest + 1;
      parts.emplace_back();
    }
    latest = std::max(latest, op.when);
    op.when = std::max(op.when - start, -1);
    parts.back().ops.push_back(op);
    parts.back().said.push_back(whole.said[i]);
  }
  parts.back().insn_count = whole.insn_count - start;
  regions.pop_back();
  if (!can_split) parts.assign(1, whole);
  regions.insert(regions.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
}

std::int32_t DraftLayout::place(const Placed& p, const Extent& extent) {
  if (p.raw) return p.raw->when;
  return p.at ? place(*p.at, extent) : p.when;
}

std::int32_t DraftLayout::place(const Instruction& at, const Extent& extent) {
  const auto refused = [&](ErrorCode code, const char* reason) {
    refuse(code, at.begin, reason);
    return 0;
  };
  if (at.begin >= at.end) return refused(ErrorCode::e_range, "no bytes between begin and end");
  if (extent.count == 0) return 0;  // by convention: an instruction elsewhere
  if (at.begin % arch_.unit != 0 || at.end % arch_.unit != 0)
    return refused(ErrorCode::e_range, "not on the boundaries of the CPU's instructions");
  if (at.begin < 0 && at.end > 0) return refused(ErrorCode::e_when, "reaches across the end of the procedure");
  if (at.from_end() != extent.from_end() && !size_)
    return refused(ErrorCode::e_when, "its region begins at the other end of a procedure of unknown size");

  const std::int64_t shift = at.from_end() == extent.from_end() ? 0 : at.from_end() ? *size_ : -*size_;
  const std::int64_t begin = (at.begin + shift) / arch_.unit;
  const std::int64_t end = (at.end + shift) / arch_.unit;
  const std::int64_t region_end = extent.from_end() ? 0 : extent.start + extent.count;
  if (size_ && end * arch_.unit > (extent.from_end() ? 0 : *size_)) {
    const std::string behind = "behind the end of the procedure, which has " + std::to_string(*size_) + " bytes";
    return refused(ErrorCode::e_when, behind.c_str());
  }
  if (begin < extent.start || end > region_end) {
    const std::string where = offset_text(extent.start * arch_.unit) + ".." +
                              (extent.from_end() ? "end" : offset_text(region_end * arch_.unit));
    return refused(ErrorCode::e_when, ("outside of its region " + where).c_str());
  }
  return static_cast<std::int32_t>(end - extent.start - 1);
}

unw_dyn_op_t DraftLayout::encode(const Placed& p, std::int32_t when) {
  if (p.raw) return *p.raw;
  const DraftDirective& d = p.directive;
  unw_word_t value = static_cast<unw_word_t>(d.value);
  if (p.automatic_label) value = label_number(d.value);
  if (d.tag == UNW_DYN_SAVE_REG) value = static_cast<unw_word_t>(number_of(d.saved_in));
  return _U_dyn_op(d.tag, _U_QP_TRUE, when, names_register(d.tag) ? number_of(d.reg) : 0, value);
}

int DraftLayout::number_of(RegNum reg) {
  if (const int number = number_in_directives(arch_, reg); number >= 0) return number;
  const RegisterInfo* info = arch_.by_dwarf(reg);
  refuse(ErrorCode::e_reg, -1,
         info ? std::string(info->name) + " has no libunwind number: rows can name it, directives cannot"
              : std::string(arch_.name) + " has no register with DWARF number " + std::to_string(reg));
  return -1;
}

/// Numbers of remember() labels: 1, 2, .., without those that explicit directives use.
unw_word_t DraftLayout::label_number(std::int64_t remembered) {
  while (static_cast<std::int64_t>(free_labels_.size()) < remembered) {
    unw_word_t number = free_labels_.empty() ? 1 : free_labels_.back() + 1;
    while (labels_in_use_.contains(number)) ++number;
    free_labels_.push_back(number);
  }
  return free_labels_[static_cast<std::size_t>(remembered - 1)];
}

void DraftLayout::refuse(ErrorCode code, std::int64_t offset, const std::string& reason) {
  const int region = static_cast<int>(regions.size()) - 1;
  const int directive = regions.empty() ? -1 : static_cast<int>(regions.back().ops.size());
  const std::uint32_t said = placing_ ? placing_->said : 0;
  if (said != 0 && said == refused_)
    return;  // one finding per instruction: each of its directives has the same mistake
  refused_ = said;
  const std::string place = said != 0 ? said_[said - 1].text(arch_)
                                      : "region " + std::to_string(region) + ", directive " + std::to_string(directive);
  Finding& finding = findings.emplace_back(finding_of(place, code, reason, offset));
  finding.region = region;
  finding.directive = directive;
}

}  // namespace jitunwind
