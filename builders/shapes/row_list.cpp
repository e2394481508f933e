#include "jitunwind/builders/shapes/row_list_p.h"

#include <algorithm>

#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {

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
