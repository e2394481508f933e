#include "unwind_core/row_cache.h"

#include <bit>

namespace jitunwind {

// Every word is released by its writer and acquired by its reader: a reader that sees one of a later sequence sees that
// sequence, too (Boehm, "Can seqlocks get along with programming language memory models?", 2012).

namespace {

using RowWords = std::array<std::uint64_t, 2>;

/// Guesses depend on more than the code, recognised stubs are few, signal frames are never compact.
bool lasts(RowOrigin origin) noexcept {
  return origin == RowOrigin::dyn_directives || origin == RowOrigin::dyn_table || origin == RowOrigin::eh_frame ||
         origin == RowOrigin::debug_frame;
}

}  // namespace

bool RowTable::read(const Entry& entry, const Question& question, Answer& out) noexcept {
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_acquire);
  if (entry.at.load(std::memory_order_acquire) != question.at) return false;
  if (entry.version.load(std::memory_order_acquire) != question.version) return false;
  const RowWords words{entry.row[0].load(std::memory_order_acquire), entry.row[1].load(std::memory_order_acquire)};
  out.origin = static_cast<RowOrigin>(entry.origin.load(std::memory_order_acquire));
  if (sequence % 2 != 0 || entry.sequence.load(std::memory_order_relaxed) != sequence) return false;
  out.row = std::bit_cast<CompactRow>(words);
  return true;
}

bool RowTable::find(const Question& question, Answer& out) const noexcept {
  if (question.version == 0) return false;
  const Set& set = sets_[set_of(question.at)];
  return read(set[0], question, out) || read(set[1], question, out);
}

void RowTable::keep(const Question& question, const Answer& answer) noexcept {
  if (question.version == 0) return;
  Set& set = sets_[set_of(question.at)];
  // The same address again, or the place that was written less often.
  const auto at = [&](std::size_t i) { return set[i].at.load(std::memory_order_relaxed); };
  const auto sequence_of = [&](std::size_t i) { return set[i].sequence.load(std::memory_order_relaxed); };
  const std::size_t place = at(0) == question.at   ? 0
                            : at(1) == question.at ? 1
                                                   : static_cast<std::size_t>(sequence_of(1) < sequence_of(0));
  Entry& entry = set[place];
  std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  if (sequence % 2 != 0) return;
  if (!entry.sequence.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire)) return;
  const auto words = std::bit_cast<RowWords>(answer.row);
  entry.at.store(question.at, std::memory_order_release);
  entry.version.store(question.version, std::memory_order_release);
  entry.row[0].store(words[0], std::memory_order_release);
  entry.row[1].store(words[1], std::memory_order_release);
  entry.origin.store(static_cast<std::uint64_t>(answer.origin), std::memory_order_release);
  entry.sequence.store(sequence + 2, std::memory_order_release);
}

void RowCache::keep(const RowTable::Question& question, const FrameRow& row) const noexcept {
  RowTable::Answer answer{{}, row.origin};
  if (question.version != 0 && lasts(row.origin) && compact(row, layout, answer.row)) table.keep(question, answer);
}

}  // namespace jitunwind
