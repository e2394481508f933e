#include "jitunwind/unwind_core/sources/guesses/unknown_code_internal.h"

#include <algorithm>

#include "jitunwind/unwind_core/memory/page_answers_p.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

std::uint64_t UnknownCode::version(Addr at, const RowCache& rows) noexcept {
  const std::uint64_t registrations = rows.changes.number(at);
  const auto moment = Moment::now();
  ModuleVersion module;
  const bool in_module = rows.modules.find(at, module);
  if (!moment || (in_module && module.version == 0)) return 0;
  const std::uint64_t of_place = RowCache::version_of(registrations, KeptBy::module, module);
  return hash_with(spread(moment->number()), of_place) | 1;
}

std::uint64_t UnknownCode::find_kept(CodeAddress at, const RowCache& rows) const noexcept {
  if (entry_of(at).first_word_of_key() != key_of(at)) return 0;
  const std::uint64_t now = version(at.lookup(), rows);
  WayOut ignored;
  if (!find(at, now, ignored)) return 0;
  count_warm_event(Counter::unknown_known);
  return now;
}

[[gnu::hot]] RowAnswer UnknownCode::find_any_row(Lookup& lookup, AnyRow& out) const noexcept {
  const RowCache* const rows = lookup.space.row_cache;
  if (rows && keeps_any_.load(std::memory_order_relaxed)) lookup.unknown_version = find_kept(lookup.at, *rows);
  if (lookup.unknown_version == 0) {
    const RowAnswer answer = sources_.find_any_row(lookup, out);
    return answer == RowAnswer::none && rows ? ask_again(lookup, out) : answer;
  }
  lookup.unknown = this;
  return RowAnswer::none;
}

/// Notes that no source knows the code. Most code is known to some source, so the version is read only now. It must be
/// read before the lookup whose result is kept, and the sources are therefore asked again.
[[gnu::noinline]] RowAnswer UnknownCode::ask_again(Lookup& lookup, AnyRow& out) const noexcept {
  const std::uint64_t now = version(lookup.at.lookup(), *lookup.space.row_cache);
  Lookup again(lookup.space, lookup.at, lookup.window, lookup.registers, lookup.guesses);
  const RowAnswer answer = sources_.find_any_row(again, out);
  if (answer != RowAnswer::none) return answer;
  count_event(Counter::unknown_met);
  keep(lookup.at, now, {});
  lookup.unknown = this;
  lookup.unknown_version = now;
  return RowAnswer::none;
}

Found UnknownCode::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  return sources_.find_procedure(lookup, out);
}

bool UnknownCode::was_told_of(Addr at) const noexcept {
  return std::ranges::any_of(sources_.row_sources, [at](const RowSource* source) { return source->was_told_of(at); });
}

}  // namespace jitunwind
