#include "jitunwind/unwind_core/kept/row_notes_p.h"

#include <array>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

enum class Keeping { can_be_kept, depends_on_more, not_compact };

Keeping verdict_on(const RowCache& rows, const NewRow& row) noexcept {
  if (row.kept_by == KeptBy::nothing) return Keeping::depends_on_more;
  return row.is_compact || rows.says_end(row.full) ? Keeping::can_be_kept : Keeping::not_compact;
}

const char* text_of(Keeping verdict) noexcept {
  switch (verdict) {
    case Keeping::can_be_kept:
      return ", can be kept";
    case Keeping::depends_on_more:
      return ", not kept: it depends on more than its code and module";
    case Keeping::not_compact:
      return ", not kept: no compact row says it";
  }
  return "";
}

/// "slow at 0x401136: row of eh_frame made, can be kept".
[[gnu::cold, gnu::noinline]] void log_slow_frame(Addr at, RowOrigin origin, Keeping verdict) noexcept {
  LogLine(LogTopic::walk)
      .text("slow at ")
      .hex(at)
      .text(": row of ")
      .text(origin_name(origin))
      .text(" made")
      .text(text_of(verdict));
}

[[gnu::cold, gnu::noinline]] void log_guess(Addr at, RowOrigin origin) noexcept {
  LogLine(LogTopic::walk).text("guessed at ").hex(at).text(": ").text(origin_name(origin));
}

/// "0x401136 eh_frame 0x401130-0x401140 cfa=rsp+16 ra=[cfa-8]".
[[gnu::cold, gnu::noinline]] void log_row(const Lookup& lookup, const FrameRow& row) noexcept {
  std::array<char, 400> text;
  write_text(row, lookup.space.arch, text);
  LogLine line(LogTopic::rows);
  line.hex(lookup.at.lookup()).text(" ").text(origin_name(row.origin)).text(" ");
  if (!row.range.empty()) line.range(row.range.begin, row.range.end).text(" ");
  if (row.signal_frame) line.text("signal ");
  line.text(text.data());
}

[[gnu::cold, gnu::noinline]] void log_new_row(const Lookup& lookup, const NewRow& row) noexcept {
  log_row(lookup, row.is_full ? row.full : row.expanded());
}

[[gnu::cold, gnu::noinline]] void log_no_row(const Lookup& lookup, const AnyRow& row, RowAnswer answer) noexcept {
  LogLine line(LogTopic::rows);
  line.hex(lookup.at.lookup());
  if (answer == RowAnswer::none) return void(line.text(" no source knows this code"));
  line.text(" ").text(error_name(row.error.code)).text(": ").text(row.error.what).text(", at ").hex(row.error.at);
}

}  // namespace

void note_no_row(const Lookup& lookup, const AnyRow& row, RowAnswer answer) noexcept {
  if (logs(LogTopic::rows)) log_no_row(lookup, row, answer);
}

void note_unusual_row(const RowCache& rows, const Lookup& lookup, const NewRow& row) noexcept {
  const Keeping verdict = verdict_on(rows, row);
  if (verdict == Keeping::depends_on_more) count_event(Counter::row_of_more);
  if (verdict == Keeping::not_compact) count_event(Counter::row_not_compact);
  if (logs(LogTopic::walk)) log_slow_frame(lookup.at.lookup(), row.full.origin, verdict);
  if (logs(LogTopic::rows)) log_new_row(lookup, row);
}

[[gnu::cold]] void log_met_once(Addr at) noexcept {
  LogLine(LogTopic::walk).text("not kept at ").hex(at).text(": met for the first time");
}

void note_guess(const Lookup& lookup, const FrameRow& row) noexcept {
  count_event(Counter::row_guessed);
  if (logs(LogTopic::walk)) log_guess(lookup.at.value(), row.origin);
  if (logs(LogTopic::rows)) log_row(lookup, row);
}

}  // namespace jitunwind
