#include <algorithm>
#include <array>
#include <cstring>

#include "jitunwind/builders/shapes/shape_lists_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {
namespace {

std::span<const unw_dyn_op_t> ops_of(const unw_dyn_region_info_t& region) noexcept {
  return {region.op, region.op_count};
}

}  // namespace

RegionList::RegionList(std::span<const RegionSpec> regions) {
  for (const RegionSpec& region : regions) bytes_ += _U_dyn_region_info_size(region.ops.size());
  if (bytes_ == 0) return;
  storage_ = std::make_unique<std::byte[]>(bytes_);
  std::byte* at = storage_.get();
  unw_dyn_region_info_t* previous = nullptr;
  for (const RegionSpec& spec : regions) {
    auto* const region = reinterpret_cast<unw_dyn_region_info_t*>(at);
    region->next = nullptr;
    region->insn_count = spec.insn_count;
    region->op_count = static_cast<std::uint32_t>(spec.ops.size());
    std::ranges::copy(spec.ops, region->op);
    if (previous) previous->next = region;
    previous = region;
    at += _U_dyn_region_info_size(spec.ops.size());
  }
}

std::uint64_t RegionList::hash() const noexcept {
  std::uint64_t value = 0;
  for (const unw_dyn_region_info_t* r = first(); r; r = r->next) {
    value = hash_with(value, std::uint64_t{r->op_count} << 32 | static_cast<std::uint32_t>(r->insn_count));
    for (std::uint32_t i = 0; i < r->op_count; ++i) {
      std::array<std::uint64_t, sizeof(unw_dyn_op_t) / 8> words;
      std::memcpy(words.data(), r->op + i, sizeof words);
      for (const std::uint64_t word : words) value = hash_with(value, word);
    }
  }
  return value;
}

bool operator==(const RegionList& a, const RegionList& b) noexcept {
  if (a.bytes_ != b.bytes_) return false;
  const unw_dyn_region_info_t* x = a.first();
  const unw_dyn_region_info_t* y = b.first();
  for (; x && y; x = x->next, y = y->next) {
    if (x->insn_count != y->insn_count || x->op_count != y->op_count) return false;
    // The memory has no padding: 1 + 1 + 2 + 4 + 8 bytes.
    if (x->op_count != 0 && std::memcmp(x->op, y->op, x->op_count * sizeof(unw_dyn_op_t)) != 0) return false;
  }
  return x == y;
}

unw_dyn_info_t descriptor_at_zero(const unw_dyn_region_info_t* regions, std::uint64_t bytes) noexcept {
  unw_dyn_info_t info{};
  info.end_ip = bytes;
  info.format = UNW_INFO_FORMAT_DYNAMIC;
  info.u.pi.regions = const_cast<unw_dyn_region_info_t*>(regions);
  return info;
}

std::vector<CodeOffset> boundaries(const unw_dyn_region_info_t* regions, const Arch& arch) {
  std::vector<CodeOffset> from_start{0};
  std::vector<CodeOffset> from_end;
  std::int64_t start = 0;
  for (const unw_dyn_region_info_t* r = regions; r; r = r->next) {
    const bool at_end = r->insn_count < 0;
    const std::int64_t length = at_end ? -std::int64_t{r->insn_count} : r->insn_count;
    if (at_end) start = r->insn_count;
    auto& out = at_end ? from_end : from_start;
    out.push_back(start * arch.unit);
    for (const unw_dyn_op_t& op : ops_of(*r)) {
      if (op.tag == UNW_DYN_STOP) break;
      // The directive takes effect after unit `when`, at the latest after the region's last one; a negative `when`
      // takes effect at the region's start.
      const std::int64_t behind = op.when < 0 ? 0 : std::min<std::int64_t>(op.when + std::int64_t{1}, length);
      if (!at_end || start + behind < 0) out.push_back((start + behind) * arch.unit);
    }
    start += length;
    if (!at_end) out.push_back(start * arch.unit);  // POP_FRAMES takes effect here
  }
  for (auto* offsets : {&from_start, &from_end}) {
    std::ranges::sort(*offsets);
    offsets->erase(std::unique(offsets->begin(), offsets->end()), offsets->end());
  }
  from_start.insert(from_start.end(), from_end.begin(), from_end.end());
  return from_start;
}

std::uint64_t covered_bytes(const unw_dyn_region_info_t* regions, const Arch& arch) noexcept {
  std::uint64_t units = 0;
  for (const unw_dyn_region_info_t* r = regions; r; r = r->next) {
    const std::int64_t count = r->insn_count;
    units += static_cast<std::uint64_t>(count < 0 ? -count : count);
  }
  return units * arch.unit;
}

std::string regions_text(const unw_dyn_region_info_t* regions, const Arch& arch) {
  std::string text;
  for (const unw_dyn_region_info_t* r = regions; r; r = r->next) {
    text += "region " + std::to_string(r->insn_count) + "\n";
    for (const unw_dyn_op_t& op : ops_of(*r)) text += "  " + directive_text(op, arch) + "\n";
  }
  return text;
}

RowList::RowList(const std::vector<Placed>& rows, Pools pools) : pools_(std::move(pools)) {
  rows_.reserve(rows.size());
  for (const auto& [offset, row] : rows) {
    const auto entries = row->entries();
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    rows_.push_back(
        {offset, row->cfa, row->args_size, static_cast<std::uint32_t>(entries_.size()), row->ra, row->signal_frame});
  }
  entries_.shrink_to_fit();
}

FrameRow RowList::row(std::size_t i) const noexcept {
  const Packed& packed = rows_[i];
  FrameRow row;
  row.cfa = packed.cfa;
  row.args_size = packed.args_size;
  row.ra = packed.ra;
  row.signal_frame = packed.signal_frame;
  // set() cannot fail, because the entries come from one row.
  for (std::size_t e = i == 0 ? 0 : rows_[i - 1].entries_end; e < packed.entries_end; ++e)
    (void)row.set(entries_[e].reg, entries_[e].rule);
  return row;
}

std::size_t RowList::bytes() const noexcept {
  std::size_t expressions = 0;
  for (const Packed& r : rows_) expressions += r.cfa.expression.size();
  for (const FrameRow::Entry& e : entries_) expressions += e.rule.expression().size();
  return rows_.capacity() * sizeof(Packed) + entries_.capacity() * sizeof(FrameRow::Entry) + expressions;
}

std::uint64_t RowList::hash() const noexcept {
  std::uint64_t value = rows_.size();
  // The hash uses only a part of each row, which suffices to distinguish lists; equality compares everything.
  for (const Packed& r : rows_)
    value = hash_with(value, static_cast<std::uint64_t>(r.offset) ^ static_cast<std::uint64_t>(r.cfa.offset));
  for (const FrameRow::Entry& e : entries_)
    value = hash_with(value, e.reg ^ (e.rule.has_expression() ? 0 : static_cast<std::uint64_t>(e.rule.offset)));
  return value;
}

bool operator==(const RowList& a, const RowList& b) noexcept {
  return a.rows_ == b.rows_ && std::ranges::equal(a.entries_, b.entries_, [](const auto& x, const auto& y) {
           return x.reg == y.reg && x.rule == y.rule;
         });
}

}  // namespace jitunwind
